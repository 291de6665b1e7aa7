#pragma once

#include "base/membership.hpp"

#include <deque>
#include <map>
#include <optional>
#include <vector>

namespace muster::rendezvous {

/// Who has which node rank of those that users gave. A second claim waits until the first is given
/// up.
class Claims {
 public:
  struct Waiter {
    NodeRank rank;
    Incarnation incarnation;
    TimePoint since;
  };

  /// False: another has it; this one waits, from `now`.
  bool claim(TimePoint now, NodeRank rank, const Incarnation& incarnation);
  /// Gives a claim or a wait up. Returns who has the rank now, if that has changed.
  std::optional<Incarnation> give_up(NodeRank rank, const Incarnation& incarnation);
  [[nodiscard]] std::optional<Incarnation> holder(NodeRank rank) const;
  [[nodiscard]] std::vector<Waiter> waiters() const;

 private:
  struct Claim {
    Incarnation holder;
    std::deque<Waiter> waiters;
  };
  std::map<NodeRank, Claim> by_rank_;
};

}  // namespace muster::rendezvous

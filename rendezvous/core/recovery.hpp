#pragma once

#include "base/membership.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <set>

namespace muster::rendezvous {

/// What agents told of a job's rounds after this server's start (protocol.md 6): which is the
/// highest, who of it is accounted for, and whether it is certain that no later one exists.
class Recovery {
 public:
  /// Of one agent, by its Hello. Agents that hold no round add what was named to them.
  void hear(const Incarnation& incarnation, const Held& held);
  /// It is gone, by its farewell (with the round that it held) or because its ranks were given
  /// away.
  void departed(const Incarnation& incarnation, RoundId round);

  /// The highest round that an agent holds or held; nullopt: nobody was in one.
  [[nodiscard]] std::optional<RoundId> highest() const { return highest_; }
  /// Somebody was told of a round.
  [[nodiscard]] bool any_told() const { return highest_named_ != RoundId{}; }
  /// Every member of the highest round is back with an unbroken lease or known to be gone, and one
  /// of those back had not said Empty to any server: so no later round can exist.
  [[nodiscard]] bool complete() const;
  /// One of the members of the highest round that are gone; nullopt: none is, as far as we know.
  [[nodiscard]] std::optional<Incarnation> gone() const;
  /// Members of the highest round of which nothing was heard.
  [[nodiscard]] std::size_t missing() const;

 private:
  void account_for(const Incarnation& gone);

  std::optional<RoundId> highest_;
  RoundId highest_named_;
  std::uint32_t nodes_ = 0;          // Of the highest.
  std::set<Incarnation> gone_;       // Members of it that are gone.
  std::set<Incarnation> accounted_;  // Members of it that are back or gone.
  std::set<Incarnation> broken_;     // Of those back, not gone: their lease had ended.
  bool any_unfinished_ = false;      // One of those back had not said Empty.
  std::map<Incarnation, RoundId> departed_;
};

}  // namespace muster::rendezvous

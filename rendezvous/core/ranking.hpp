#pragma once

#include "base/membership.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::rendezvous {

/// A node that will be in a round, as far as its place among the others depends on it.
struct Contender {
  Incarnation incarnation;
  std::string machine;
  std::string address;  ///< Numeric.
  std::string topology;
  std::string role;
  std::uint32_t slots = 1;
  std::optional<NodeRank> given;  ///< By its user.
};

/// Who had which node rank in the round before: places are kept by incarnation, and those of agents
/// that are gone by machine.
struct PastPlace {
  Incarnation incarnation;
  std::string machine;
  friend bool operator==(const PastPlace&, const PastPlace&) = default;
};

/// A node's ranks in a round.
struct Ranks {
  NodeRank node_rank;
  Rank rank_offset;
  LocalRank local_rank_offset;
  std::uint32_t local_world_size = 1;
  std::uint32_t role_rank_offset = 0;
  std::uint32_t role_world_size = 1;
};

struct Ranking {
  std::vector<std::size_t> order;  ///< By node rank: which contender.
  std::vector<Ranks> ranks;        ///< By node rank.
  std::uint32_t world_size = 0;
};

/// Gives out node ranks 0 .. n - 1 and the workers' ranks, contiguous per node. A given node rank
/// is honoured; who stays keeps its place, and an agent that replaces another on its machine gets
/// that one's; the others stand by topology label, then by address in numeric order. Where a round
/// is too small for a place, those who had one go first to those that are free.
///
/// O(n log n). Contenders claim each given rank at most once.
[[nodiscard]] Ranking rank_nodes(const std::vector<Contender>& contenders,
                                 const std::vector<PastPlace>& past);

}  // namespace muster::rendezvous

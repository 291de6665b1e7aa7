#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace muster {

/// A value that can't be mistaken for another of the same representation. `.value` is the raw one.
template <class Tag, class Rep>
struct Strong {
  Rep value{};
  friend auto operator<=>(const Strong&, const Strong&) = default;
};

using Rank = Strong<struct RankTag, std::uint32_t>;  ///< In the job: 0 .. world size - 1.
using LocalRank =
    Strong<struct LocalRankTag, std::uint32_t>;  ///< On the machine: 0 .. local world size - 1.
using NodeRank = Strong<struct NodeRankTag, std::uint32_t>;  ///< Of the agent: 0 .. nodes - 1.

/// Names a round: one agreed membership. Compared in this order; never used twice (protocol.md 1).
struct RoundId {
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;
  friend auto operator<=>(const RoundId&, const RoundId&) = default;
};

using Duration = std::chrono::nanoseconds;

/// An instant of the process's monotonic clock. Cores are handed it; only the edge reads a clock.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

}  // namespace muster

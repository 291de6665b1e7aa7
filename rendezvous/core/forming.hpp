#pragma once

#include "base/membership.hpp"
#include "rendezvous/core/sizes.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace muster::rendezvous {

/// Who could be in the next round, in numbers.
struct Presence {
  std::size_t there = 0;    ///< Could be in it, and are there (protocol.md 1).
  std::size_t awaited = 0;  ///< Of the round before, in none now, and not there at the moment.
};

/// When the next round forms (protocol.md 4): by the first condition that holds.
///
///   - max is there;
///   - after a Stop: every remaining member is there, and min allows it;
///   - the surroundings tell how many nodes to expect: that many are there;
///   - min is there, and 2 s passed without an arrival;
///   - min has been there for the last call (30 s). Set by the user, the last call stands for the
///     two conditions before it.
///
/// One object for one gathering: from the end of a round, or the job's first node, to the next
/// round.
class Forming {
 public:
  static constexpr Duration kQuiet = std::chrono::seconds(2);
  static constexpr Duration kLastCall = std::chrono::seconds(30);

  enum class After { Nothing, Stop };  ///< What this gathering follows.
  Forming(TimePoint since, After after) : since_(since), after_(after) {}

  /// A node that could be in the round came.
  void arrived(TimePoint now) { last_arrival_ = now; }
  /// The number of those that are there may have changed.
  void counted(TimePoint now, const Sizes& sizes, std::size_t there);

  struct Outcome {
    /// The round is to be formed now, of so many nodes.
    std::optional<std::uint32_t> size;
    std::optional<TimePoint> look_again;  ///< Else: when time alone may change the outcome.
    std::string reason;                   ///< Which condition held, or what is missing.
  };
  [[nodiscard]] Outcome decide(TimePoint now, const Sizes& sizes, const JobSettings& settings,
                               const Presence& presence) const;
  /// The expected size, rounded down to a legal one; nullopt: none is told.
  [[nodiscard]] static std::optional<std::uint32_t> expected(const Sizes& sizes,
                                                             const JobSettings& settings);

  [[nodiscard]] TimePoint since() const { return since_; }
  [[nodiscard]] bool in_last_call() const { return enough_since_.has_value(); }

 private:
  TimePoint since_;
  After after_;
  std::optional<TimePoint> last_arrival_;
  std::optional<TimePoint> enough_since_;  // Min is there.
};

}  // namespace muster::rendezvous

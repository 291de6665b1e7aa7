#pragma once

#include "base/ids.hpp"
#include "base/rank_set.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

/// Draws equal lines of several workers together: one that others write within kWindow comes once,
/// with the set of them all. The lines of a worker keep their order: it joins a line only behind
/// its own last one.
///
///   add --> held --every worker has written it, kWindow is over, or too much is held--> taken
///
/// Lines leave in the order in which they came first. Pure: the same calls give the same answers.
class Fold {
 public:
  static constexpr Duration kWindow = std::chrono::milliseconds(200);
  /// What may be held; beyond it the oldest line leaves before its time.
  static constexpr std::size_t kMaxLines = 4096;
  static constexpr std::size_t kMaxBytes = 1024 * 1024;

  struct Folded {
    std::string text;
    RankSet workers;   ///< Those that wrote it.
    std::string time;  ///< Of the first to come.
  };

  /// `workers`: how many may write a line, all of them counted.
  explicit Fold(std::uint32_t workers) : workers_(workers) {}

  void add(TimePoint now, std::uint32_t worker, std::string_view text, std::string_view time);

  /// The lines whose time has come.
  [[nodiscard]] std::vector<Folded> take(TimePoint now);
  /// All that are not behind the last line of this worker: what it writes next is not folded.
  [[nodiscard]] std::vector<Folded> take_through(std::uint32_t worker);
  [[nodiscard]] std::vector<Folded> take_all();

  /// When to call `take` although nothing came; nullopt: never.
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

 private:
  struct Held {
    Folded line;
    std::uint32_t writers = 1;
    TimePoint leaves;
  };

  Folded pop();

  std::uint32_t workers_;
  std::uint64_t first_ = 0;  // The number of the oldest line that is held.
  std::deque<Held> held_;
  std::size_t bytes_ = 0;
  std::map<std::string, std::deque<std::uint64_t>, std::less<>> numbers_;  // Of the held, by text.
  std::map<std::uint32_t, std::uint64_t> behind_;  // By worker: the number behind its last line's.
};

}  // namespace muster::agent

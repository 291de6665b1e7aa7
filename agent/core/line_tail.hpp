#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

/// The last lines of a stream, whatever bytes it carries, in bounded memory.
class LineTail {
 public:
  static constexpr std::size_t kMaxLines = 200;
  /// A longer line is cut, and ends in "...".
  static constexpr std::size_t kMaxLineBytes = 2048;

  void add(std::string_view bytes);

  /// Oldest first, the unfinished last line included. Of a line that was overwritten by carriage
  /// returns (a progress bar) the last state counts.
  [[nodiscard]] std::vector<std::string> lines() const;

 private:
  void extend_open_line(std::string_view piece);
  void append_after_returns(std::string_view piece);
  void append(std::string_view part);

  std::deque<std::string> finished_;
  std::string open_;
  bool restart_ = false;  // A carriage return came: what follows, if no newline, replaces the line.
};

}  // namespace muster::agent

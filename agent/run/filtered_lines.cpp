#include "agent/run/filtered_lines.hpp"

#include "base/log/wall_time.hpp"
#include "base/posix/wall_clock.hpp"

#include <algorithm>
#include <utility>

namespace muster::agent {

void FilteredLines::take(const Line& line) {
  const bool is_wanted = std::any_of(
      texts_.begin(), texts_.end(),
      [&line](const std::string& text) { return line.text.find(text) != std::string_view::npos; });
  if (!is_wanted) return;
  turn_ += prefix_.text(prefix_.has_time() ? local_clock_time(posix::wall_now()) : std::string());
  turn_ += line.text;
  turn_ += '\n';
}

void FilteredLines::flush() {
  file_.write(turn_);
  turn_.clear();
}

}  // namespace muster::agent

#include "agent/run/prefixed_lines.hpp"

#include "base/log/wall_time.hpp"
#include "base/posix/wall_clock.hpp"

#include <utility>

namespace muster::agent {

PrefixedLines::PrefixedLines(Console& console, Prefix prefix)
    : console_(console), prefix_(std::move(prefix)), shown_prefix_(prefix_.text("")) {}

void PrefixedLines::take(const Line& line) {
  if (turn_.empty() && prefix_.has_time())
    shown_prefix_ = prefix_.text(local_clock_time(posix::wall_now()));
  console_.open_line().add(turn_, this, shown_prefix_, line);
}

void PrefixedLines::flush() {
  console_.write_lines(turn_);
  turn_.clear();
}

}  // namespace muster::agent

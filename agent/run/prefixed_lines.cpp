#include "agent/run/prefixed_lines.hpp"

#include "agent/run/wall_time.hpp"

#include <utility>

namespace muster::agent {

PrefixedLines::PrefixedLines(Console& console, Prefix prefix)
    : console_(console), prefix_(std::move(prefix)), shown_prefix_(prefix_.text("")) {}

void PrefixedLines::take(const Line& line) {
  if (turn_.empty() && prefix_.has_time()) shown_prefix_ = prefix_.text(local_time_text());
  console_.open_line().add(turn_, this, shown_prefix_, line);
}

void PrefixedLines::flush() {
  console_.write_lines(turn_);
  turn_.clear();
}

}  // namespace muster::agent

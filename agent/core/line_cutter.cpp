#include "agent/core/line_cutter.hpp"

#include <algorithm>

namespace muster::agent {

/// Takes of a piece without newline as much as there is room for; returns how much.
std::size_t LineCutter::extend(std::string_view piece) {
  const auto part = piece.substr(0, kLineLimit - open_.size());
  // A return at the end may belong to a newline: it begins a new state once anything follows.
  const auto from = open_.size() - (open_.ends_with('\r') ? 1 : 0);
  open_.append(part);
  const auto state = last_state(std::string_view(open_).substr(from));
  if (const auto begins = open_.size() - state.size(); begins > from) {
    replaces_ = replaces_ || shown_ > 0;
    is_redrawn_ = true;
    shown_ = 0;
    open_.erase(0, begins);
  }
  return part.size();
}

std::optional<Line> LineCutter::unfinished() const {
  const auto text = without_returns(open_);
  if (text.size() <= shown_) return std::nullopt;
  return Line{.text = text,
              .shown = shown_,
              .replaces = replaces_,
              .is_redrawn = is_redrawn_ || text.size() < open_.size(),
              .has_ended = false};
}

void LineCutter::mark_shown() {
  shown_ = without_returns(open_).size();
  replaces_ = false;
}

/// What follows the last carriage return that is followed by anything.
std::string_view LineCutter::last_state(std::string_view text) {
  const auto last = without_returns(text).rfind('\r');
  return last == std::string_view::npos ? text : text.substr(last + 1);
}

std::string_view LineCutter::without_returns(std::string_view text) {
  const auto last = text.find_last_not_of('\r');
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

}  // namespace muster::agent

#include "agent/core/line_tail.hpp"

#include <algorithm>

namespace muster::agent {

void LineTail::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    extend_open_line(bytes.substr(0, end));
    if (end == std::string_view::npos) return;
    finished_.push_back(std::move(open_));
    open_.clear();
    restart_ = false;
    if (finished_.size() > kMaxLines) finished_.pop_front();
    bytes.remove_prefix(end + 1);
  }
}

/// Adds a piece without a newline. Carriage returns start the line anew: what follows the last one
/// that is followed by anything is what a terminal would show.
void LineTail::extend_open_line(std::string_view piece) {
  while (piece.ends_with('\r')) {
    piece.remove_suffix(1);
    if (piece.empty() || piece.back() != '\r') {
      append_after_returns(piece);
      restart_ = true;
      return;
    }
  }
  append_after_returns(piece);
}

void LineTail::append_after_returns(std::string_view piece) {
  if (const auto last = piece.rfind('\r'); last != std::string_view::npos) {
    restart_ = true;
    piece.remove_prefix(last + 1);
  }
  append(piece);
}

std::vector<std::string> LineTail::lines() const {
  std::vector<std::string> lines(finished_.begin(), finished_.end());
  if (!open_.empty()) lines.push_back(open_);
  if (lines.size() > kMaxLines) lines.erase(lines.begin());
  return lines;
}

void LineTail::append(std::string_view part) {
  if (part.empty()) return;
  if (restart_) open_.clear();
  restart_ = false;
  const auto room = kMaxLineBytes - std::min(open_.size(), kMaxLineBytes);
  open_.append(part.substr(0, room));
  if (part.size() > room && !open_.ends_with("...")) open_ += "...";
}

}  // namespace muster::agent

#include "agent/core/line_tail.hpp"

#include <algorithm>

namespace muster::agent {

void LineTail::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto end = bytes.find_first_of("\n\r");
    append(bytes.substr(0, end));
    if (end == std::string_view::npos) return;
    if (bytes[end] == '\r') {
      restart_ = true;
    } else {
      finished_.push_back(std::move(open_));
      open_.clear();
      restart_ = false;
      if (finished_.size() > kMaxLines) finished_.pop_front();
    }
    bytes.remove_prefix(end + 1);
  }
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

#include "agent/core/fold.hpp"

#include <algorithm>
#include <utility>

namespace muster::agent {

void Fold::add(TimePoint now, std::uint32_t worker, std::string_view text, std::string_view time) {
  auto& behind = behind_[worker];
  auto found = numbers_.find(text);
  if (found == numbers_.end()) found = numbers_.emplace(text, std::deque<std::uint64_t>{}).first;
  auto& equals = found->second;
  if (const auto next = std::lower_bound(equals.begin(), equals.end(), behind);
      next != equals.end()) {
    auto& held = held_[*next - first_];
    held.line.workers.insert(worker, worker);
    ++held.writers;
    behind = *next + 1;
    return;
  }
  const auto number = first_ + held_.size();
  held_.push_back({.line = {.text = std::string(text), .workers = {}, .time = std::string(time)},
                   .leaves = now + kWindow});
  held_.back().line.workers.insert(worker, worker);
  equals.push_back(number);
  bytes_ += text.size();
  behind = number + 1;
}

std::vector<Fold::Folded> Fold::take(TimePoint now) {
  std::vector<Folded> taken;
  while (!held_.empty()) {
    const auto& oldest = held_.front();
    const bool is_too_much = held_.size() > kMaxLines || bytes_ > kMaxBytes;
    if (oldest.writers < workers_ && oldest.leaves > now && !is_too_much) break;
    taken.push_back(pop());
  }
  return taken;
}

std::vector<Fold::Folded> Fold::take_through(std::uint32_t worker) {
  std::vector<Folded> taken;
  const auto behind = behind_.find(worker);
  while (behind != behind_.end() && first_ < behind->second && !held_.empty()) {
    taken.push_back(pop());
  }
  return taken;
}

std::vector<Fold::Folded> Fold::take_all() {
  std::vector<Folded> taken;
  while (!held_.empty()) taken.push_back(pop());
  return taken;
}

Fold::Folded Fold::pop() {
  auto line = std::move(held_.front().line);
  held_.pop_front();
  bytes_ -= line.text.size();
  const auto equals = numbers_.find(line.text);
  equals->second.pop_front();
  if (equals->second.empty()) numbers_.erase(equals);
  ++first_;
  return line;
}

std::optional<TimePoint> Fold::next_deadline() const {
  if (held_.empty()) return std::nullopt;
  return held_.front().leaves;
}

}  // namespace muster::agent

#include "base/rank_set.hpp"

#include <algorithm>
#include <iterator>

namespace muster {

void RankSet::insert(std::uint32_t first, std::uint32_t last) {
  auto next = last_of_.upper_bound(first);
  if (next != last_of_.begin()) {
    const auto before = std::prev(next);
    if (std::uint64_t{before->second} + 1 >= first) {
      first = before->first;
      last = std::max(last, before->second);
      last_of_.erase(before);
    }
  }
  while (next != last_of_.end() && next->first <= std::uint64_t{last} + 1) {
    last = std::max(last, next->second);
    next = last_of_.erase(next);
  }
  last_of_.emplace(first, last);
}

bool RankSet::contains(std::uint32_t rank) const {
  const auto next = last_of_.upper_bound(rank);
  return next != last_of_.begin() && std::prev(next)->second >= rank;
}

std::string RankSet::text(std::uint32_t offset) const {
  std::string text;
  for (const auto& [first, last] : last_of_) {
    if (!text.empty()) text += ',';
    text += std::to_string(first + offset);
    if (last > first) text += "-" + std::to_string(last + offset);
  }
  return text;
}

}  // namespace muster

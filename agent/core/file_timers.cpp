#include "agent/core/file_timers.hpp"

#include <algorithm>
#include <utility>

namespace muster::agent {

bool FileTimers::take(WallTime now, const TimerRequest& request) {
  Name name(request.pid, request.scope);
  if (!request.expires) {
    timers_.erase(name);
    return true;
  }
  if (timers_.size() >= kMaxTimers && !timers_.contains(name)) return false;
  timers_.insert_or_assign(
      std::move(name),
      Timer{*request.expires, std::max<Duration>(*request.expires - now, {}), request.signal});
  return true;
}

std::vector<FileTimers::Expired> FileTimers::expire(WallTime now) {
  std::vector<Expired> expired;
  while (!timers_.empty()) {
    const auto first = std::min_element(
        timers_.begin(), timers_.end(),
        [](const auto& a, const auto& b) { return a.second.expires < b.second.expires; });
    if (first->second.expires > now) break;
    const auto& [name, timer] = *first;
    expired.push_back({name.first, name.second, timer.after, timer.signal});
    timers_.erase(first);
    if (expired.back().signal > 0) forget(expired.back().pid);
  }
  return expired;
}

std::optional<WallTime> FileTimers::next_deadline() const {
  std::optional<WallTime> next;
  for (const auto& [name, timer] : timers_)
    next = next ? std::min(*next, timer.expires) : timer.expires;
  return next;
}

void FileTimers::forget(int pid) {
  std::erase_if(timers_, [pid](const auto& one) { return one.first.first == pid; });
}

}  // namespace muster::agent

#include "rendezvous/core/archive.hpp"

#include <algorithm>
#include <utility>

namespace muster::rendezvous {
namespace {

bool attended(const Archive::Ended& ended, const Hello& hello) {
  return ended.attended.contains(hello.incarnation) ||
         (!hello.launch_tag.empty() && hello.launch_tag == ended.launch_tag);
}

}  // namespace

void Archive::keep(TimePoint now, Ended ended) {
  const auto number = next_++;
  by_job_[ended.view.id].insert(number);
  by_number_.emplace(number, std::move(ended));
  deadlines_.set(number, now + kKept);
  if (by_number_.size() > kMost) forget(by_number_.begin()->first);
}

const Verdict* Archive::find(const Hello& hello) const {
  const auto found = by_job_.find(hello.job);
  if (found == by_job_.end()) return nullptr;
  const auto& numbers = found->second;
  const auto same = std::find_if(numbers.rbegin(), numbers.rend(), [&](auto number) {
    return attended(by_number_.at(number), hello);
  });
  if (same != numbers.rend()) return &*by_number_.at(*same).view.verdict;
  // A server that started in the middle knows the last rounds of a job only.
  const auto earlier = std::find_if(numbers.begin(), numbers.end(), [&](auto number) {
    return hello.held.round && hello.held.round <= by_number_.at(number).last_round;
  });
  return earlier == numbers.end() ? nullptr : &*by_number_.at(*earlier).view.verdict;
}

const Archive::Ended* Archive::newest(const std::string& job) const {
  const auto found = by_job_.find(job);
  return found == by_job_.end() ? nullptr : &by_number_.at(*found->second.rbegin());
}

const JobView* Archive::view(const std::string& job) const {
  const auto* const ended = newest(job);
  return ended == nullptr ? nullptr : &ended->view;
}

std::vector<JobView> Archive::views() const {
  std::vector<JobView> views;
  for (const auto& [job, numbers] : by_job_) views.push_back(by_number_.at(*numbers.rbegin()).view);
  return views;
}

void Archive::expire(TimePoint now) {
  for (const auto number : deadlines_.take_over(now)) forget(number);
}

void Archive::forget(std::uint64_t number) {
  deadlines_.clear(number);
  const auto found = by_number_.find(number);
  const auto job = by_job_.find(found->second.view.id);
  job->second.erase(number);
  if (job->second.empty()) by_job_.erase(job);
  by_number_.erase(found);
}

}  // namespace muster::rendezvous

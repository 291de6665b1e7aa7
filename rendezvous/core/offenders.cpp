#include "rendezvous/core/offenders.hpp"

#include <algorithm>

namespace muster::rendezvous {

std::optional<Duration> Offenders::blame(TimePoint now, const std::string& machine,
                                         TimePoint joined, const std::string& reason) {
  if (now - joined >= kProbation) {
    by_machine_.erase(machine);
    return std::nullopt;
  }
  if (!by_machine_.contains(machine)) make_room();
  auto& sentence = by_machine_[machine];
  auto length = kFirst;
  for (int offence = 0; offence < sentence.offences && length < kLongest; ++offence) length *= 2;
  length = std::min(length, kLongest);
  ++sentence.offences;
  sentence.ends = now + length;
  sentence.reason = reason;
  return length;
}

void Offenders::heard_of(TimePoint now, const std::string& machine) {
  if (by_machine_.contains(machine)) return;
  make_room();
  by_machine_.emplace(machine, Sentence{1, now + kFirst, "excluded before this server started"});
}

const Offenders::Sentence* Offenders::sentence(TimePoint now, const std::string& machine) const {
  const auto found = by_machine_.find(machine);
  return found == by_machine_.end() || found->second.ends <= now ? nullptr : &found->second;
}

std::vector<std::string> Offenders::excluded(TimePoint now) const {
  std::vector<std::string> machines;
  for (const auto& [machine, sentence] : by_machine_) {
    if (sentence.ends > now && machines.size() < kMostTold) machines.push_back(machine);
  }
  return machines;
}

void Offenders::make_room() {
  if (by_machine_.size() < kMost) return;
  by_machine_.erase(
      std::min_element(by_machine_.begin(), by_machine_.end(),
                       [](const auto& a, const auto& b) { return a.second.ends < b.second.ends; }));
}

}  // namespace muster::rendezvous

// What the agent hears of its workers by their beacons, and tells them there.

#include "agent/run/agent.hpp"
#include "base/posix/boot_clock.hpp"

#include <algorithm>
#include <utility>

namespace muster::agent {
namespace {

/// While a round runs its beacons are looked at this often: what a worker says there wakes nobody.
constexpr Duration kLookInterval = std::chrono::seconds(1);

bool says_the_same(const WorkerProgress& a, const WorkerProgress& b) {
  return a.rank == b.rank && a.step == b.step && a.saves == b.saves && a.phase == b.phase;
}

}  // namespace

void Agent::watch_beacons() {
  if (is_empty_) return;
  beacon_timer_.expires_after(kLookInterval);
  beacon_timer_.async_wait(life_.guard([this](const boost::system::error_code& error) {
    if (error || is_empty_) return;
    look_at_beacons();
    watch_beacons();
  }));
}

std::optional<posix::BeaconPage::Said> Agent::hear_beacon(std::uint32_t index) {
  auto said = beacons_.heard(index);
  if (said) feed(WorkerGroup::BeaconHeard{index, said->saves, said->heeds_requests});
  return said;
}

/// Reports how far the workers are where that has changed.
void Agent::look_at_beacons() {
  if (is_empty_) return;
  Progress progress{assignment_.round, {}};
  for (std::uint32_t index = 0; index < workers_.size(); ++index) {
    auto said = workers_[index] ? hear_beacon(index) : std::nullopt;
    if (!said) continue;
    progress.workers.push_back({.rank = {assignment_.rank_offset.value + index},
                                .step = said->step,
                                .saves = said->saves,
                                .phase = std::move(said->phase),
                                .quiet = posix::boot_now() - said->at});
  }
  if (std::ranges::equal(progress.workers, reported_progress_, says_the_same)) return;
  reported_progress_ = progress.workers;
  attendance_.report(std::move(progress));
}

void Agent::act(const WorkerGroup::TellWorkers& tell) {
  auto words = beacons_.told();
  switch (tell.word) {
    case WorkerGroup::TellWorkers::Word::LeaseRunningOut:
      logger_.debug("telling the workers word=lease-running-out");
      if (const auto ends = keeper_.page.lease_ends())
        words.lease_ends = ends->time_since_epoch().count();
      break;
    case WorkerGroup::TellWorkers::Word::CheckpointNow:
      logger_.debug("telling the workers word=checkpoint-now");
      ++words.save_requests;
      words.leaving = 1;
      break;
  }
  beacons_.tell(words);
}

void Agent::tell_deadline(const Prepare& prepare) {
  if (prepare.left == Duration::zero()) return;
  auto words = beacons_.told();
  words.leaves_at = (posix::boot_now() + prepare.left).time_since_epoch().count();
  beacons_.tell(words);
}

void Agent::tell_round_is_over() {
  auto words = beacons_.told();
  words.round_over = 1;
  beacons_.tell(words);
}

}  // namespace muster::agent

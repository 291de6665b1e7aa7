#include "agent/core/worker_group.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

namespace muster::agent {
namespace {

/// Whether a worker that was asked to leave by a signal did just that: shells and handlers say so
/// by 128 + the signal's number.
bool left_as_asked(const ExitStatus& status, int signal) {
  return status.success() || shell_code(status) == 128 + signal;
}

}  // namespace

std::vector<WorkerGroup::Action> WorkerGroup::step(TimePoint now, const Event& event) {
  actions_.clear();
  std::visit([this, now](const auto& happened) { on(now, happened); }, event);
  return std::exchange(actions_, {});
}

std::optional<TimePoint> WorkerGroup::next_deadline() const {
  if (const auto* draining = std::get_if<Draining>(&phase_)) return draining->ends;
  if (const auto* stopping = std::get_if<Stopping>(&phase_)) return stopping->kill_at;
  if (const auto* killing = std::get_if<Killing>(&phase_))
    return std::min(killing->sweep_at, killing->stuck_at);
  return std::nullopt;
}

void WorkerGroup::on(TimePoint, const Assigned& assigned) {
  // An order that was delayed until a later round had been named starts nothing (protocol.md 2).
  if (!std::holds_alternative<Idle>(phase_) || assigned.assignment.round <= newest_) return;
  assignment_ = assigned.assignment;
  newest_ = assignment_.round;
  workers_.assign(settings_.workers, Worker::Absent);
  victims_.clear();
  phase_ = Starting{0};
  if (assignment_.node_rank == NodeRank{0}) {
    actions_.emplace_back(HostStore{assignment_});
  } else {
    actions_.emplace_back(Spawn{assignment_, 0});
  }
}

void WorkerGroup::on(TimePoint, const Hosted&) {
  MUSTER_ASSERT(std::holds_alternative<Starting>(phase_));
  actions_.emplace_back(Spawn{assignment_, 0});
}

void WorkerGroup::on(TimePoint, const NotHosted& failed) {
  MUSTER_ASSERT(std::holds_alternative<Starting>(phase_));
  fail_to_start(0, failed.message, false);
}

void WorkerGroup::on(TimePoint, const Spawned& spawned) {
  auto& starting = std::get<Starting>(phase_);
  MUSTER_ASSERT(spawned.index == starting.next);
  workers_[spawned.index] = Worker::Alive;
  if (++starting.next < settings_.workers) {
    actions_.emplace_back(Spawn{assignment_, starting.next});
    return;
  }
  phase_ = Running{};
  send(Started{assignment_.round});
}

void WorkerGroup::on(TimePoint, const NotSpawned& failed) {
  MUSTER_ASSERT(std::holds_alternative<Starting>(phase_));
  fail_to_start(failed.index, failed.message, failed.user_error);
}

void WorkerGroup::on(TimePoint now, const Exited& exited) {
  MUSTER_ASSERT(workers_[exited.index] == Worker::Alive);
  workers_[exited.index] = exited.status.success() ? Worker::Succeeded : Worker::Ended;

  const auto* stopping = std::get_if<Stopping>(&phase_);
  if (std::holds_alternative<Killing>(phase_) ||
      (stopping != nullptr && left_as_asked(exited.status, stopping->signal))) {
    victims_.push_back({Rank{assignment_.rank_offset.value + exited.index}, exited.status});
  } else if (!exited.status.success()) {
    WorkerFailure failure = exited.evidence;
    failure.status = exited.status;
    fail(std::move(failure), exited.index);
  }

  if (stopping != nullptr && !any_alive()) {
    kill(now);
  } else if (std::holds_alternative<Running>(phase_) && all_succeeded()) {
    phase_ = Draining{now + kDrainPatience};
    send(Succeeded{assignment_.round});
  }
}

void WorkerGroup::on(TimePoint now, const StopOrdered& ordered) {
  newest_ = std::max(newest_, ordered.stop.round);
  if (ordered.stop.round != assignment_.round) return;
  if (std::holds_alternative<Draining>(phase_)) {
    kill(now);
    return;
  }
  if (!std::holds_alternative<Starting>(phase_) && !std::holds_alternative<Running>(phase_)) return;
  for (std::uint32_t index = 0; index < workers_.size(); ++index) {
    if (workers_[index] == Worker::Alive) actions_.emplace_back(Signal{index, ordered.stop.signal});
  }
  phase_ = Stopping{now + settings_.grace, ordered.stop.signal};
  if (hurried_ || !any_alive()) kill(now);
}

void WorkerGroup::on(TimePoint, const SignalPassed& passed) {
  for (std::uint32_t index = 0; index < workers_.size(); ++index) {
    if (workers_[index] == Worker::Alive) actions_.emplace_back(Signal{index, passed.signal});
  }
}

void WorkerGroup::on(TimePoint now, const Hurried&) {
  hurried_ = true;  // The Stop that the user waits for may be on its way still.
  if (std::holds_alternative<Stopping>(phase_) || std::holds_alternative<Draining>(phase_))
    kill(now);
}

void WorkerGroup::on(TimePoint, const TreeEmptied&) {
  const bool ending = std::holds_alternative<Draining>(phase_) ||
                      std::holds_alternative<Stopping>(phase_) ||
                      std::holds_alternative<Killing>(phase_);
  if (ending && !any_alive()) end_round();
}

void WorkerGroup::on(TimePoint now, const Ticked&) {
  if (const auto* draining = std::get_if<Draining>(&phase_)) {
    if (now >= draining->ends) kill(now);
  } else if (const auto* stopping = std::get_if<Stopping>(&phase_)) {
    if (now >= stopping->kill_at) kill(now);
  } else if (auto* killing = std::get_if<Killing>(&phase_)) {
    if (now >= killing->stuck_at) {
      phase_ = StuckForGood{};
      actions_.emplace_back(GiveUp{assignment_.round});
    } else if (now >= killing->sweep_at) {
      killing->sweep_at = now + kSweepInterval;
      actions_.emplace_back(KillTree{});
    }
  }
}

void WorkerGroup::send(Report report) { actions_.emplace_back(Send{std::move(report)}); }

void WorkerGroup::kill(TimePoint now) {
  phase_ = Killing{now + kSweepInterval, now + kKillPatience};
  actions_.emplace_back(KillTree{});
}

void WorkerGroup::end_round() {
  phase_ = Idle{};
  actions_.emplace_back(EndRound{assignment_.round, std::exchange(victims_, {})});
}

void WorkerGroup::fail_to_start(std::uint32_t index, const std::string& message, bool user_error) {
  WorkerFailure failure;
  failure.detail = message;
  failure.user_error = user_error;
  phase_ = Running{};  // Those that were started, until the Stop.
  fail(std::move(failure), index);
}

void WorkerGroup::fail(WorkerFailure failure, std::uint32_t index) {
  failure.rank = Rank{assignment_.rank_offset.value + index};
  failure.local_rank = LocalRank{assignment_.local_rank_offset.value + index};
  failure.node_rank = assignment_.node_rank;
  const auto absent = std::count(workers_.begin(), workers_.end(), Worker::Absent);
  const auto started =
      static_cast<std::uint32_t>(workers_.size()) - static_cast<std::uint32_t>(absent);
  send(Failed{assignment_.round, std::move(failure), started});
}

bool WorkerGroup::any_alive() const {
  return std::find(workers_.begin(), workers_.end(), Worker::Alive) != workers_.end();
}

bool WorkerGroup::all_succeeded() const {
  return std::all_of(workers_.begin(), workers_.end(),
                     [](Worker worker) { return worker == Worker::Succeeded; });
}

}  // namespace muster::agent

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
  if (const auto* knocking = std::get_if<Knocking>(&phase_)) return knocking->ends;
  if (const auto* draining = std::get_if<Draining>(&phase_)) return draining->ends;
  if (const auto* stopping = std::get_if<Stopping>(&phase_))
    return std::min(stopping->tree_at.value_or(stopping->kill_at), stopping->kill_at);
  if (const auto* clearing = std::get_if<Clearing>(&phase_)) return clearing->kill_at;
  if (const auto* killing = std::get_if<Killing>(&phase_))
    return std::min(killing->sweep_at, killing->stuck_at);
  if (!std::holds_alternative<Running>(phase_)) return std::nullopt;
  if (!leftovers_) return skew_ends_;
  return std::min(leftovers_->due, skew_ends_.value_or(leftovers_->due));
}

void WorkerGroup::on(TimePoint, const Assigned& assigned) {
  // An order that was delayed until a later round had been named starts nothing (protocol.md 2).
  if (!std::holds_alternative<Idle>(phase_) || assigned.assignment.round <= newest_) return;
  assignment_ = assigned.assignment;
  newest_ = assignment_.round;
  workers_.assign(settings_.workers, Worker::Absent);
  beacons_.assign(settings_.workers, {});
  victims_.clear();
  prepared_ = false;
  leftovers_.reset();
  skew_ends_.reset();
  const bool hosts = assignment_.node_rank == NodeRank{0} && !assignment_.store_on_server;
  if (hosts) {
    phase_ = Hosting{};
    actions_.emplace_back(HostStore{assignment_});
    return;
  }
  acknowledge();
  if (assignment_.nodes == 1) {
    spawn(0);
    return;
  }
  phase_ = Knocking{};
  actions_.emplace_back(Knock{assignment_});
}

void WorkerGroup::on(TimePoint, const Hosted&) {
  MUSTER_ASSERT(std::holds_alternative<Hosting>(phase_));
  acknowledge();
  spawn(0);
}

void WorkerGroup::on(TimePoint, const NotHosted& failed) {
  MUSTER_ASSERT(std::holds_alternative<Hosting>(phase_));
  fail_to_start(0, failed.message, false);
}

void WorkerGroup::on(TimePoint, const KnockHeard&) {
  if (std::holds_alternative<Knocking>(phase_)) spawn(0);
}

void WorkerGroup::on(TimePoint, const KnockFailed& failed) {
  if (auto* knocking = std::get_if<Knocking>(&phase_)) knocking->last = failed.detail;
}

void WorkerGroup::on(TimePoint now, const MasterIsUp& up) {
  auto* knocking = std::get_if<Knocking>(&phase_);
  if (knocking == nullptr || up.round != assignment_.round || knocking->ends) return;
  knocking->ends = now + kKnockPatience;
}

void WorkerGroup::on(TimePoint, const Spawned& spawned) {
  MUSTER_ASSERT(spawned.index == std::get<Spawning>(phase_).next);
  workers_[spawned.index] = Worker::Alive;
  if (prepared_ && settings_.preempt_signal != 0)
    actions_.emplace_back(Signal{spawned.index, settings_.preempt_signal});
  if (spawned.index + 1 < settings_.workers) {
    spawn(spawned.index + 1);
    return;
  }
  phase_ = Running{};
  send(Started{assignment_.round});
}

void WorkerGroup::on(TimePoint, const NotSpawned& failed) {
  MUSTER_ASSERT(std::holds_alternative<Spawning>(phase_));
  fail_to_start(failed.index, failed.message, failed.user_error);
}

void WorkerGroup::on(TimePoint now, const Exited& exited) {
  MUSTER_ASSERT(workers_[exited.index] == Worker::Alive);
  const auto* stopping = std::get_if<Stopping>(&phase_);
  const bool succeeded = exited.status.success() && !exited.has_failed;
  const auto* killing = std::get_if<Killing>(&phase_);
  // Without a beacon, a worker that was asked to save and leaves has saved, whatever its exit code,
  // and one that ends for want of it will not save any more; whether it had finished as well is not
  // known. What fails of itself does so again in the next round.
  const bool saved =
      (has_saved(exited.index) && exited.status.success()) ||
      (prepared_ && settings_.preempt_signal != 0 &&
       (left_as_asked(exited.status, settings_.preempt_signal) ||
        exited.evidence.cause == Cause::PeerLoss || exited.evidence.cause == Cause::WorkerError));
  workers_[exited.index] = succeeded && !saved ? Worker::Succeeded : Worker::Ended;

  if (killing != nullptr || saved ||
      (stopping != nullptr && left_as_asked(exited.status, stopping->signal))) {
    if (killing == nullptr || !killing->by_lease)
      victims_.push_back({Rank{assignment_.rank_offset.value + exited.index}, exited.status});
  } else if (!succeeded) {
    WorkerFailure failure = exited.evidence;
    failure.status = exited.status;
    fail(std::move(failure), exited.index);
  }
  if (prepared_) say_who_still_saves();

  if (stopping != nullptr && !any_alive()) {
    clear(now);
  } else if (stopping != nullptr) {
    actions_.emplace_back(SignalTree{SIGTERM, false});
  } else if (std::holds_alternative<Running>(phase_) && all_succeeded()) {
    phase_ = Draining{now + settings_.drain};
    send(Succeeded{assignment_.round});
  } else if (workers_[exited.index] == Worker::Succeeded) {
    leftovers_ = Leftovers{now + settings_.drain, SIGTERM};
    if (settings_.success_skew && !skew_ends_) skew_ends_ = now + *settings_.success_skew;
  }
}

void WorkerGroup::on(TimePoint now, const StopOrdered& ordered) {
  const auto& round = ordered.stop.round;
  const bool unheard_of = round > newest_;
  newest_ = std::max(newest_, round);
  if (std::holds_alternative<Idle>(phase_)) {
    // Its Assignment did not arrive, and will not be taken any more: nothing of it is here.
    if (unheard_of) {
      send(Stopped{round});
      actions_.emplace_back(EndRound{round, {}});
    }
    return;
  }
  if (round != assignment_.round) return;
  send(Stopped{round});
  if (std::holds_alternative<Draining>(phase_)) {
    clear(now);
  } else if (is_starting() || std::holds_alternative<Running>(phase_)) {
    stop(now, ordered.stop.signal);
  }
}

void WorkerGroup::on(TimePoint, const PrepareOrdered& ordered) {
  if (std::holds_alternative<Idle>(phase_) || ordered.prepare.round != assignment_.round) return;
  const bool signals =
      settings_.preempt_signal != 0 && (is_starting() || std::holds_alternative<Running>(phase_));
  if (!prepared_) {
    for (auto& beacon : beacons_) beacon.before = beacon.saves;
    actions_.emplace_back(TellWorkers{TellWorkers::Word::CheckpointNow});
    for (std::uint32_t index = 0; signals && index < workers_.size(); ++index) {
      if (workers_[index] == Worker::Alive)
        actions_.emplace_back(Signal{index, settings_.preempt_signal});
    }
  }
  prepared_ = true;
  say_who_still_saves();
}

void WorkerGroup::on(TimePoint now, const LeaseEnded& ended) {
  if (std::holds_alternative<Idle>(phase_) || std::holds_alternative<StuckForGood>(phase_)) return;
  if (auto* killing = std::get_if<Killing>(&phase_)) {
    killing->by_lease = true;
    return;
  }
  // Peers will fail of what follows: they are victims of the node's loss. Unless something else
  // had failed here before.
  const bool is_first =
      (is_starting() || std::holds_alternative<Running>(phase_)) &&
      std::find(workers_.begin(), workers_.end(), Worker::Ended) == workers_.end();
  if (is_first) {
    WorkerFailure loss;
    loss.cause = Cause::LostNode;
    loss.detail = ended.reason;
    fail(std::move(loss), 0);
  }
  kill(now, true);
}

void WorkerGroup::on(TimePoint, const LeaseHalfOver&) {
  if (!std::holds_alternative<Idle>(phase_))
    actions_.emplace_back(TellWorkers{TellWorkers::Word::LeaseRunningOut});
}

void WorkerGroup::on(TimePoint, const BeaconHeard& heard) {
  if (heard.index >= beacons_.size()) return;
  const bool had_saved = has_saved(heard.index);
  auto& beacon = beacons_[heard.index];
  beacon.saves = heard.saves;
  beacon.tells_saves = heard.heeds_requests || heard.saves > 0;
  if (has_saved(heard.index) != had_saved) say_who_still_saves();
}

void WorkerGroup::on(TimePoint, const SignalPassed& passed) {
  for (std::uint32_t index = 0; index < workers_.size(); ++index) {
    if (workers_[index] == Worker::Alive) actions_.emplace_back(Signal{index, passed.signal});
  }
}

void WorkerGroup::on(TimePoint now, const LauncherSignalled&) {
  if (!launcher_signalled_at_) launcher_signalled_at_ = now;
  if (auto* stopping = std::get_if<Stopping>(&phase_)) {
    stopping->kill_at = kill_at(stopping->kill_at);
  } else if (auto* clearing = std::get_if<Clearing>(&phase_)) {
    clearing->kill_at = kill_at(clearing->kill_at);
  } else if (auto* killing = std::get_if<Killing>(&phase_)) {
    killing->stuck_at = give_up_at(now, killing->stuck_at);
  }
}

void WorkerGroup::on(TimePoint now, const Hurried&) {
  hurried_ = true;  // The Stop that the user waits for may be on its way still.
  if (std::holds_alternative<Stopping>(phase_) || std::holds_alternative<Clearing>(phase_) ||
      std::holds_alternative<Draining>(phase_))
    kill(now);
}

void WorkerGroup::on(TimePoint, const TreeEmptied&) {
  const bool ending =
      std::holds_alternative<Draining>(phase_) || std::holds_alternative<Stopping>(phase_) ||
      std::holds_alternative<Clearing>(phase_) || std::holds_alternative<Killing>(phase_);
  if (ending && !any_alive()) end_round();
}

void WorkerGroup::on(TimePoint now, const Ticked&) {
  if (const auto* knocking = std::get_if<Knocking>(&phase_)) {
    if (knocking->ends && now >= *knocking->ends) give_up_knocking(knocking->last);
  } else if (const auto* draining = std::get_if<Draining>(&phase_)) {
    if (now >= draining->ends) clear(now);
  } else if (auto* stopping = std::get_if<Stopping>(&phase_)) {
    if (now >= stopping->kill_at) {
      kill(now);
    } else if (stopping->tree_at && now >= *stopping->tree_at) {
      stopping->tree_at.reset();
      actions_.emplace_back(SignalTree{SIGTERM, true});
    }
  } else if (const auto* clearing = std::get_if<Clearing>(&phase_)) {
    if (now >= clearing->kill_at) kill(now);
  } else if (std::holds_alternative<Running>(phase_)) {
    see_to_leftovers(now);
    see_to_skew(now);
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

void WorkerGroup::acknowledge() { send(Acknowledged{assignment_.round}); }

void WorkerGroup::spawn(std::uint32_t index) {
  phase_ = Spawning{index};
  actions_.emplace_back(Spawn{assignment_, index});
}

void WorkerGroup::stop(TimePoint now, int signal) {
  if (std::holds_alternative<Knocking>(phase_)) actions_.emplace_back(StopKnocking{});
  for (std::uint32_t index = 0; index < workers_.size(); ++index) {
    if (workers_[index] == Worker::Alive) actions_.emplace_back(Signal{index, signal});
  }
  const auto ends = kill_at(now + settings_.grace);
  phase_ = Stopping{ends - tree_patience(), ends, signal};
  if (hurried_) {
    kill(now);
  } else if (!any_alive()) {
    clear(now);
  } else if (std::find(workers_.begin(), workers_.end(), Worker::Ended) != workers_.end()) {
    actions_.emplace_back(SignalTree{SIGTERM, false});
  }
}

/// All workers have ended: what is left of them is asked to, and has a while.
void WorkerGroup::clear(TimePoint now) {
  auto ends = kill_at(now + tree_patience());
  if (const auto* stopping = std::get_if<Stopping>(&phase_))
    ends = std::min(ends, stopping->kill_at);
  phase_ = Clearing{ends};
  actions_.emplace_back(SignalTree{SIGTERM, true});
}

void WorkerGroup::kill(TimePoint now, bool by_lease) {
  if (std::holds_alternative<Knocking>(phase_)) actions_.emplace_back(StopKnocking{});
  phase_ = Killing{now + kSweepInterval, give_up_at(now, now + kKillPatience), by_lease};
  actions_.emplace_back(KillTree{});
}

/// A worker exited 0 while others run on: what it left behind has had its time.
void WorkerGroup::see_to_leftovers(TimePoint now) {
  if (!leftovers_ || now < leftovers_->due) return;
  actions_.emplace_back(SignalTree{leftovers_->signal, false});
  if (leftovers_->signal == SIGTERM) {
    leftovers_ = Leftovers{now + tree_patience(), SIGKILL};
  } else {
    leftovers_.reset();
  }
}

/// One worker exited 0 so long ago that the others wait for it in vain.
void WorkerGroup::see_to_skew(TimePoint now) {
  if (!skew_ends_ || now < *skew_ends_) return;
  skew_ends_.reset();
  const auto alive = std::find(workers_.begin(), workers_.end(), Worker::Alive);
  const auto ended = std::find(workers_.begin(), workers_.end(), Worker::Succeeded);
  if (alive == workers_.end() || ended == workers_.end()) return;
  const auto rank_of = [this](auto worker) {
    return assignment_.rank_offset.value + static_cast<std::uint32_t>(worker - workers_.begin());
  };
  WorkerFailure failure;
  failure.detail = "it still runs, while rank " + std::to_string(rank_of(ended)) +
                   " exited with 0 longer ago than --success-skew allows";
  fail(std::move(failure), static_cast<std::uint32_t>(alive - workers_.begin()));
}

Duration WorkerGroup::tree_patience() const { return settings_.grace / kTreeShare; }

/// `when`, or earlier, where whoever signalled the launcher will kill it.
TimePoint WorkerGroup::kill_at(TimePoint when) const {
  if (!settings_.last_deadlines || !launcher_signalled_at_) return when;
  return std::min(when, *launcher_signalled_at_ + settings_.last_deadlines->kill);
}

TimePoint WorkerGroup::give_up_at(TimePoint now, TimePoint when) const {
  if (!settings_.last_deadlines || !launcher_signalled_at_) return when;
  const auto due = *launcher_signalled_at_ + settings_.last_deadlines->give_up;
  return std::min(when, std::max(due, now + kLeastKillPatience));
}

Duration WorkerGroup::grace_from(TimePoint now) const {
  return std::max(kill_at(now + settings_.grace) - now, Duration::zero());
}

void WorkerGroup::end_round() {
  phase_ = Idle{};
  actions_.emplace_back(EndRound{assignment_.round, std::exchange(victims_, {})});
}

void WorkerGroup::give_up_knocking(const std::string& last) {
  Unreachable unreachable{assignment_.round, last};
  if (last.empty()) {
    unreachable.detail = "the store of the master at " + to_string(assignment_.master) +
                         " did not answer to a knock";
  }
  actions_.emplace_back(StopKnocking{});
  phase_ = Running{};  // Without workers, until the Stop.
  send(std::move(unreachable));
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

/// Those that are about to be started have not saved either. Where nothing asks them to, nobody
/// waits for what will not come.
void WorkerGroup::say_who_still_saves() {
  const bool signals = settings_.preempt_signal != 0;
  std::uint32_t left = 0;
  for (std::uint32_t index = 0; index < workers_.size(); ++index) {
    const bool will_save = workers_[index] == Worker::Alive
                               ? (signals || beacons_[index].tells_saves) && !has_saved(index)
                               : signals && workers_[index] == Worker::Absent && is_starting();
    if (will_save) ++left;
  }
  send(Saving{assignment_.round, left});
}

bool WorkerGroup::has_saved(std::uint32_t index) const {
  return prepared_ && beacons_[index].saves > beacons_[index].before;
}

bool WorkerGroup::is_starting() const {
  return std::holds_alternative<Hosting>(phase_) || std::holds_alternative<Knocking>(phase_) ||
         std::holds_alternative<Spawning>(phase_);
}

bool WorkerGroup::any_alive() const {
  return std::find(workers_.begin(), workers_.end(), Worker::Alive) != workers_.end();
}

bool WorkerGroup::all_succeeded() const {
  return std::all_of(workers_.begin(), workers_.end(),
                     [](Worker worker) { return worker == Worker::Succeeded; });
}

}  // namespace muster::agent

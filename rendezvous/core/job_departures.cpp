#include "base/exit_status.hpp"
#include "base/text.hpp"
#include "rendezvous/core/job.hpp"
#include "rendezvous/core/settings.hpp"
#include "rendezvous/core/verdict.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

// Who leaves before the end, and how the job ends (protocol.md 4, 5).
namespace muster::rendezvous {

void Job::on(TimePoint now, Member& member, const Leaving& report) {
  if (verdict_ || member.released) return;
  if (member.departure) {
    if (std::exchange(member.repeats_leaving, false)) return;
    const bool first_signal = member.departure->signal == 0;
    if (first_signal) member.departure->signal = report.signal;
    if (first_signal && report.preempted) return;  // It was noticed before.
    // A second signal: no more saving, and no more staying for the sake of others.
    if (auto* running = std::get_if<Running>(&phase_); running != nullptr && running->preparing) {
      stop_round(now, called(member.hello) + " is signalled again", Round::StoppedFor::Change);
    } else if (!member.holds) {
      roster_.change(member, [](Member& one) { one.departure->at_once = true; });
      release(now, member);
    }
    return;
  }
  Departure departure;
  departure.signal = report.signal;
  departure.preempted = report.preempted;
  departure.reason = "the launcher got " + signal_name(report.signal);
  depart(now, member, std::move(departure), Duration::zero());
}

void Job::on(TimePoint now, Member& member, const Notice& report) {
  if (verdict_ || member.departure) return;
  Departure departure{.preempted = true, .reason = report.reason};
  if (departure.reason.empty()) departure.reason = "the machine will be taken away";
  depart(now, member, std::move(departure), report.left);
}

void Job::on(TimePoint, Member& member, const Saving& report) {
  auto* place = place_of(member, report.round);
  const auto* running = std::get_if<Running>(&phase_);
  if (place == nullptr || running == nullptr || !running->preparing) return;
  const auto before = round_->still_saving();
  round_->note_saving(*place, report.left);
  if (round_->still_saving() == before) return;
  note(std::to_string(round_->still_saving()) + " of " + count_of(round_->workers(), "worker") +
       " still save");
}

/// The node will be in no later round. `left`: until its machine is taken away; zero: unknown.
void Job::depart(TimePoint now, Member& member, Departure departure, Duration left) {
  const auto& name = member.hello.name;
  const auto text = name.empty() ? departure.reason : "node " + name + ": " + departure.reason;
  const bool plain = departure.is_plain();
  note("leaving: " + text);
  roster_.change(member, [&](Member& one) { one.departure = std::move(departure); });
  leavers_.push_back(member.hello.incarnation);
  leaving_since_ = leaving_since_.value_or(now);
  if (!round_) {
    if (!end_if_too_few(now) && attempts_ == 0) release(now, member);
    return;
  }
  auto* place = round_->find(member.hello.incarnation);
  if (place == nullptr || place->over()) {  // A spare, or its workers are done.
    if (!round_->stop()) release(now, member);
    return;
  }
  if (std::holds_alternative<Draining>(phase_)) {  // What its workers left behind has no more time.
    Stop stop;
    stop.round = round_->id();
    stop.signal = member.departure->signal != 0 ? member.departure->signal : SIGTERM;
    stop.reason = member.departure->reason;
    order(member, std::move(stop));
    return;
  }
  if (round_->stop()) {  // One stop signal a round.
    round_->excuse();    // Its workers may have been stopped before we heard of it.
    if (plain && !sizes_.legal(roster_.counts().candidates)) round_->count_no_failure_any_more();
    return;
  }
  if (plain) {
    stop_round(now, place->assignment.nodes > 1 ? text : member.departure->reason,
               Round::StoppedFor::Leaving);
  } else {
    prepare(now, text, left);
  }
}

/// All workers of the round are to save, before the node leaves.
void Job::prepare(TimePoint now, const std::string& reason, Duration left) {
  auto& running = std::get<Running>(phase_);
  const auto deadline = now + (left > Duration::zero() ? left : settings_.preempt_deadline);
  if (running.preparing && running.preparing->deadline <= deadline) return;
  running.preparing = Preparing{deadline, reason};
  round_->excuse();
  note("all workers are to save within " + duration_text(deadline - now) + ": " + reason);
  for (const auto& place : round_->places()) {
    const auto* member = roster_.find(place.incarnation);
    if (member != nullptr && !place.over())
      order(*member, prepare_order(now, *running.preparing, *member));
  }
}

/// The deadline is told as what was left of it when the quoted ping was heard, so that an agent
/// that counts from when it sent that ping is never later than we are. Without a lease there are no
/// pings, and no way that takes time.
Order Job::prepare_order(TimePoint now, const Preparing& preparing, const Member& member) const {
  const auto from = settings_.lease > Duration::zero() ? member.heard : now;
  const auto left = std::max(preparing.deadline - from, Duration::zero());
  return Prepare{round_->id(), preparing.reason, left};
}

/// Tells a node that leaves its own end: the job goes on. The node that hosts the server stays as
/// long as others need it.
void Job::release(TimePoint now, Member& member) {
  if (member.released || !member.departure) return;
  const auto& departure = *member.departure;
  if (member.hello.hosts_server && roster_.counts().guests > 0 && !departure.at_once) {
    changed(now);
    return;
  }
  roster_.change(member, [](Member& one) { one.released = true; });
  free_claim(now, member);
  order(member, own_verdict(member));
}

Verdict Job::own_verdict(const Member& member) const {
  Verdict verdict;
  verdict.alone = true;
  verdict.exit_code =
      member.departure->is_plain() ? kSignalBase + member.departure->signal : kRequeue;
  verdict.summary = member.departure->reason;
  verdict.attempts = attempts_;
  verdict.restarts = restarts_;
  verdict.max_restarts = settings_.max_restarts;
  return verdict;
}

/// The leavers' second is over: the job goes on without them.
void Job::release_leavers(TimePoint now) {
  leaving_since_.reset();
  std::vector<Incarnation> stay;
  for (const auto& incarnation : std::exchange(leavers_, {})) {
    auto* member = roster_.find(incarnation);
    if (member == nullptr) continue;
    if (!member->holds) release(now, *member);
    if (!member->released) stay.push_back(incarnation);
  }
  leavers_ = std::move(stay);
}

/// The end that leavers bring about: a launcher was signalled and the others are too few to go on,
/// or nobody stays at all.
std::optional<Verdict> Job::leavers_verdict() const {
  const auto remaining = roster_.counts().candidates;
  const Departure* any = nullptr;
  const Departure* plain = nullptr;
  for (const auto& incarnation : leavers_) {
    const auto found = roster_.members().find(incarnation);
    if (found == roster_.members().end() || found->second.released) continue;
    const auto& departure = *found->second.departure;
    if (any == nullptr) any = &departure;
    if (plain == nullptr && departure.is_plain()) plain = &departure;
  }
  Verdict verdict;
  if (plain != nullptr && !sizes_.legal(remaining)) {
    verdict.exit_code = kSignalBase + plain->signal;
    verdict.summary = plain->reason;
    return verdict;
  }
  if (any == nullptr || remaining > 0) return std::nullopt;
  verdict.exit_code = kRequeue;
  verdict.summary = any->reason;
  return verdict;
}

bool Job::end_if_too_few(TimePoint now) {
  if (attempts_ == 0) return false;
  auto verdict = leavers_verdict();
  if (!verdict) return false;
  end(now, std::move(*verdict));
  return true;
}

/// After a round that was stopped: what leaves no next one.
bool Job::end_if_it_must(TimePoint now, const Round& round) {
  const auto remaining = roster_.counts().candidates;
  const auto cause = round.cause();
  const bool worker_failed = cause && round.failures()[*cause].cause != Cause::LostNode;
  const auto failed = [&] {
    auto verdict = cause ? verdict_of(round.failures(), *cause) : Verdict{};
    verdict.victims = round.victims();
    return verdict;
  };

  if (const auto ending = ordered_end_ ? ordered_end_ : leavers_verdict()) {
    auto verdict = worker_failed ? failed() : *ending;
    if (worker_failed) {
      verdict.summary += "; then " + ending->summary;
      // Unless the failure had ended the job anyway.
      if (may_restart()) verdict.exit_code = ending->exit_code;
    }
    verdict.victims = round.victims();
    end(now, with_stuck(std::move(verdict)));
    return true;
  }
  if (worker_failed && is_fruitless()) {
    auto verdict = failed();
    verdict.exit_code = kNoProgress;
    const auto attempts = " in " + count_of(fruitless_, "attempt");
    verdict.summary =
        "no progress: " +
        (best_step_ == 0 ? "no worker told of a step" + attempts
                         : "step " + std::to_string(best_step_) + " was never passed" + attempts) +
        "; " + verdict.summary;
    end(now, with_stuck(std::move(verdict)));
    return true;
  }
  if (worker_failed && !may_restart()) {
    end(now, with_stuck(failed()));
    return true;
  }
  if (!unreachable_.empty() &&
      !sizes_.legal(remaining - std::min(remaining, unreachable_nodes(round).size()))) {
    Verdict verdict;
    verdict.exit_code = kRequeue;
    verdict.summary =
        "a node can't reach the workers' store, and the job can't go on without it: " +
        unreachable_.front();
    end(now, std::move(verdict));
    return true;
  }
  if (any_stuck_ && remaining == 0) {
    auto verdict = failed();
    if (!cause) verdict.exit_code = kOwnError;
    end(now, with_stuck(std::move(verdict)));
    return true;
  }
  return false;
}

/// Those that could not reach the store; where most could not, the node that hosts it.
std::vector<Incarnation> Job::unreachable_nodes(const Round& round) const {
  const auto others = round.places().size() - 1;
  if (unreachable_from_.size() < 2 || unreachable_from_.size() * 2 <= others)
    return unreachable_from_;
  return {round_member(round, NodeRank{0})};
}

void Job::exclude_unreachable(TimePoint now, const Round& round) {
  if (unreachable_.empty()) return;
  for (const auto& incarnation : unreachable_nodes(round)) {
    auto* member = roster_.find(incarnation);
    if (member == nullptr) continue;
    roster_.change(*member, [](Member& one) { one.unreachable = true; });
    blame(now, member->hello.machine, now, "no way to the workers' store: " + unreachable_.front());
  }
  unreachable_.clear();
  unreachable_from_.clear();
}

/// The workers ran, and yet another attempt would fail where those before it did.
bool Job::is_fruitless() const {
  const auto& most = settings_.max_restarts_without_progress;
  return any_started_ && most && fruitless_ >= *most;
}

bool Job::may_restart() const { return any_started_ && restarts_ < settings_.max_restarts; }

Verdict Job::with_stuck(Verdict verdict) const {
  if (!any_stuck_) return verdict;
  if (verdict.summary.empty() && verdict.exit_code == 0) verdict.exit_code = kOwnError;
  if (!verdict.summary.empty()) verdict.summary += "; ";
  verdict.summary += stuck_pids_.empty() ? "some processes could not be killed"
                                         : "these processes could not be killed:";
  for (const int pid : stuck_pids_) verdict.summary += " " + std::to_string(pid);
  return verdict;
}

void Job::abandon(TimePoint now, const std::string& reason) {
  if (verdict_) return;
  Verdict verdict;
  verdict.exit_code = kRequeue;
  verdict.summary = "the node that hosts the rendezvous leaves: " + reason;
  round_.reset();
  recovery_.reset();
  for (auto& [incarnation, member] : roster_.members())
    roster_.change(member, [](Member& one) { one.holds.reset(); });
  end(now, std::move(verdict));
  advance(now);
}

void Job::end(TimePoint now, Verdict verdict) {
  verdict.alone = false;
  verdict.round = std::max(verdict.round, last_round_);
  // Each of many is sent it, and all copies are there at one time.
  if (roster_.size() > kMostWholeVerdicts) shorten(verdict);
  verdict.attempts = std::max(verdict.attempts, attempts_);
  verdict.restarts = std::max(verdict.restarts, restarts_);
  verdict.max_restarts = settings_.max_restarts;
  note("ends with exit code " + std::to_string(verdict.exit_code) + ": " +
       (verdict.summary.empty() ? "all workers exited with 0" : verdict.summary));
  verdict_ = std::move(verdict);
  tell_at_.reset();
  phase_ = Told{now + kVerdictPatience};
  for (auto& [incarnation, member] : roster_.members()) {
    if (!member.released) order(member, *verdict_);
  }
}

/// Once all know the verdict, or had the time: they leave, and the node that hosts the server after
/// the others.
bool Job::dismiss(TimePoint now, Told& told) {
  if (told.patience_ends && now >= *told.patience_ends) told.patience_ends.reset();
  const bool late = !told.patience_ends;
  const auto hosts = roster_.counts().hosts;
  if (!told.dismissed) {
    if (roster_.counts().unseen > 0 && !late) return false;
    told.dismissed = true;
    // A server that goes with its node waits for those too that are cut off and may yet come back.
    told.patience_ends =
        now + kVerdictPatience + (hosts > 0 ? roster_.give_away_after() : Duration::zero());
    for (auto& [incarnation, member] : roster_.members()) {
      if (member.hello.hosts_server || member.dismissed) continue;
      member.dismissed = true;
      send(member, Dismissal{});
    }
    return true;
  }
  const auto others = hosts > 0 ? roster_.size() - hosts : roster_.counts().guests;
  if (others > 0 && !late) return false;
  for (auto& [incarnation, member] : roster_.members()) {
    if (!member.dismissed) send(member, Dismissal{});
    member.dismissed = true;
  }
  phase_ = Over{};
  actions_.emplace_back(action::Ended{id_, *verdict_});
  return false;
}

void Job::send_verdict(Member& member) {
  if (member.released) return;
  order(member, *verdict_);
  if (const auto* told = std::get_if<Told>(&phase_);
      (told == nullptr || told->dismissed) && !member.hello.hosts_server) {
    member.dismissed = true;
    send(member, Dismissal{});
  }
}

}  // namespace muster::rendezvous

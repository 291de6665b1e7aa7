#include "base/assert.hpp"
#include "base/text.hpp"
#include "rendezvous/core/job.hpp"
#include "rendezvous/core/secrets.hpp"
#include "rendezvous/core/verdict.hpp"

#include <algorithm>
#include <csignal>
#include <limits>
#include <tuple>
#include <utility>

// The phases: forming a round, stopping it, what follows from its end (protocol.md 4, 5).
namespace muster::rendezvous {
namespace {

constexpr auto kNowhere = std::numeric_limits<std::size_t>::max();

}  // namespace

void Job::advance(TimePoint now) {
  while (advance_once(now)) {
  }
  if (tell_at_ && now >= *tell_at_) tell_all(now);
}

/// True: the phase changed, look again.
bool Job::advance_once(TimePoint now) {
  if (recovery_ && now >= common_.recovery_ends) end_recovery(now);
  if (auto* gathering = std::get_if<Gathering>(&phase_)) return gather(now, *gathering);
  if (auto* running = std::get_if<Running>(&phase_)) return run(now, *running);
  if (auto* told = std::get_if<Told>(&phase_)) return dismiss(now, *told);
  if (std::holds_alternative<Over>(phase_)) return false;
  return end_round(now);
}

/// Who has not come back by now is lost.
void Job::end_recovery(TimePoint now) {
  const auto missing = recovery_->missing();
  recovery_.reset();
  if (!round_ || !recovered_ || missing == 0) return;
  WorkerFailure failure;
  failure.cause = Cause::LostNode;
  failure.node_rank = {std::numeric_limits<std::uint32_t>::max()};  // Which they were is not known.
  failure.node = count_of(missing, "unknown node");
  failure.detail = "no word since the server started anew";
  round_->add_failure(failure);
  if (!round_->stop()) stop_round(now, describe_failure(failure), Round::StoppedFor::Failure);
}

bool Job::gather(TimePoint now, Gathering& gathering) {
  if (ordered_end_ && !in_recovery(now)) {
    end(now, *ordered_end_);
    return true;
  }
  if (leaving_since_ && now >= *leaving_since_ + kLeaveWindow) {
    release_leavers(now);
    if (!std::holds_alternative<Gathering>(phase_)) return true;
  }
  if (roster_.counts().candidates == 0 && end_if_too_few(now)) return true;
  const auto seen = presence();
  gathering.forming.counted(now, sizes_, seen.there);
  const bool may_form = roster_.counts().holders == 0 && !leaving_since_ &&
                        (!not_before_ || now >= *not_before_) && recovery_allows(now);
  forming_deadline_.reset();
  if (may_form) {
    const auto outcome = gathering.forming.decide(now, sizes_, settings_, seen);
    forming_deadline_ = outcome.look_again;
    if (outcome.size) {
      form(now, *outcome.size, outcome.reason);
      return true;
    }
  }
  if (not_before_ && now >= *not_before_) not_before_.reset();
  if (roster_.size() == 0) {
    if (in_recovery(now)) return false;
    if (attempts_ > 0 && now < deserted_since_ + settings_.join_timeout) return false;
    note("nobody is left");
    phase_ = Over{};
    return false;
  }
  if (now < join_deadline(gathering) || sizes_.legal(seen.there)) return false;
  // That a node was lost is what its user must know; that nobody took its place is what followed.
  auto verdict = last_loss_ ? verdict_of({*last_loss_}, 0) : Verdict{};
  verdict.exit_code = kRequeue;
  verdict.summary += (last_loss_ ? "; " : "") + ("no round formed: " + gathering_text(now));
  end(now, std::move(verdict));
  return true;
}

bool Job::run(TimePoint now, Running& running) {
  if (ordered_end_) {  // Before this round was known here.
    stop_round(now, ordered_end_->summary, Round::StoppedFor::Leaving);
    return true;
  }
  const bool all_known = !recovered_ || !recovery_ || recovery_->missing() == 0;
  if (round_->all_succeeded() && all_known) {
    note("all workers exited with 0");
    phase_ = Draining{};
    return true;
  }
  if (running.preparing && (round_->still_saving() == 0 || now >= running.preparing->deadline)) {
    const auto left = round_->still_saving();
    auto reason = running.preparing->reason;
    if (left > 0)
      reason += "; " + std::to_string(left) + " of " + count_of(round_->workers(), "worker") +
                " had not saved in time";
    stop_round(now, reason, Round::StoppedFor::Change);
    return true;
  }
  if (const auto at = scale_up_at(running); at && now >= *at) {
    const auto more = roster_.counts().ready;
    stop_round(
        now, "scale-up: " + count_of(more, "more node") + (more == 1 ? " is there" : " are there"),
        Round::StoppedFor::Change);
    return true;
  }
  return false;
}

/// Draining and Stopping.
bool Job::end_round(TimePoint now) {
  if (in_recovery(now) && recovery_->missing() > 0) return false;
  if (!round_->all_answered()) return false;
  if (round_->stop()) round_->decide_cause();
  if (!round_->all_over()) return false;
  if (in_recovery(now) && !recovery_->complete() && !round_->all_succeeded()) return false;
  if (roster_.counts().holders > 0) return false;
  conclude(now);
  return true;
}

void Job::stop_round(TimePoint now, const std::string& reason, Round::StoppedFor why) {
  Stop stop;
  stop.round = round_->id();
  stop.signal = SIGTERM;
  stop.reason = reason;
  round_->stop(std::move(stop), why);
  phase_ = Stopping{};
  note("round " + std::to_string(round_->id().number) + " is stopped: " + reason);
  for (const auto& place : round_->places()) {
    const auto* member = roster_.find(place.incarnation);
    if (member != nullptr && !place.over()) send_stop(*member, place);
  }
  changed(now);
}

void Job::send_stop(const Member& member, const Round::Place& place) {
  if (place.over()) return;
  auto stop = *round_->stop();
  if (member.departure && member.departure->signal != 0) stop.signal = member.departure->signal;
  stop.blameless = round_->stopped_for() != Round::StoppedFor::Failure;
  stop.gone = round_->gone();
  order(member, std::move(stop));
}

/// The round is over on every node: what follows.
void Job::conclude(TimePoint now) {
  auto round = *std::exchange(round_, std::nullopt);
  concluded_ = round.id();
  recovered_ = false;
  round.decide_cause();
  remember_places(round);
  if (settings_.store_on_server) actions_.emplace_back(action::CloseStore{id_});

  const bool success = round.all_succeeded() && (!round.stop() || !round.cause());
  if (success && !(round.stop() && ordered_end_)) {
    Verdict verdict;
    verdict.victims = round.victims();
    end(now, with_stuck(std::move(verdict)));
    return;
  }
  judge_progress(round);
  if (end_if_it_must(now, round)) return;

  const auto cause = round.cause();
  if (cause) {
    const auto& failure = round.failures()[*cause];
    note("first cause: " + describe_failure(failure));
    if (failure.cause == Cause::LostNode) {
      last_loss_ = failure;
    } else {
      ++restarts_;
      note("charged: " + std::to_string(restarts_) + " of " +
           count_of(settings_.max_restarts, "restart"));
      if (const auto* member = roster_.find(round_member(round, failure.node_rank)))
        blame(now, member->hello.machine, member->joined, "blamed: " + describe_failure(failure));
      if (settings_.restart_backoff > Duration::zero())
        not_before_ = now + settings_.restart_backoff;
    }
  }
  exclude_unreachable(now, round);
  begin_gathering(now, Forming::After::Stop);
}

/// Whether the round got further than any before, and failed.
void Job::judge_progress(const Round& round) {
  if (round.highest_step() > best_step_) {
    best_step_ = round.highest_step();
    fruitless_ = 0;
  }
  const auto cause = round.cause();
  if (cause && round.failures()[*cause].cause != Cause::LostNode) ++fruitless_;
}

void Job::begin_gathering(TimePoint now, Forming::After after) {
  phase_ = Gathering{Forming(now, after)};
  deserted_since_ = now;
  unreachable_.clear();
  unreachable_from_.clear();
  any_stuck_ = false;
  stuck_pids_.clear();
  changed(now);
}

Presence Job::presence() const {
  const auto& counts = roster_.counts();
  Presence presence{counts.ready, counts.awaited};
  // Those that are passed over are taken when there is no other way.
  if (!sizes_.legal(presence.there))
    presence.there = std::min<std::size_t>(presence.there + counts.cooling, sizes_.smallest());
  return presence;
}

/// Those that stay first, by their place; then those that the user gave a rank, then by arrival.
std::vector<Member*> Job::choose(std::uint32_t size) {
  std::map<Incarnation, std::size_t> stayed;
  for (std::size_t place = 0; place < past_.size(); ++place)
    stayed.emplace(past_[place].incarnation, place);
  using Key = std::tuple<bool, std::size_t, std::size_t, std::uint64_t>;
  std::vector<std::pair<Key, Member*>> ready;
  for (auto& [incarnation, member] : roster_.members()) {
    if (!Roster::is_candidate(member) || !member.there || member.holds) continue;
    const auto place = stayed.find(incarnation);
    const auto& given = member.hello.node_rank;
    ready.emplace_back(Key{member.cooling, place == stayed.end() ? kNowhere : place->second,
                           given ? given->value : kNowhere, member.number},
                       &member);
  }
  std::sort(ready.begin(), ready.end());
  std::vector<Member*> chosen;
  for (std::size_t index = 0; index < std::min<std::size_t>(size, ready.size()); ++index)
    chosen.push_back(ready[index].second);
  return chosen;
}

void Job::form(TimePoint now, std::uint32_t size, const std::string& reason) {
  MUSTER_ASSERT(size > 0);
  const auto chosen = choose(size);
  std::vector<Contender> contenders;
  contenders.reserve(chosen.size());
  for (const auto* member : chosen) {
    const auto& hello = member->hello;
    contenders.push_back({hello.incarnation, hello.machine, address_of(*member), hello.topology,
                          hello.role, hello.slots, hello.node_rank});
  }
  const auto ranking = rank_nodes(contenders, past_);

  Assignment common;
  common.round = {common_.epochs.current(), ++number_};
  common.attempt = attempts_++;
  common.restarts = restarts_;
  common.max_restarts = settings_.max_restarts;
  common.best_step = best_step_;
  common.fruitless = fruitless_;
  common.world_size = ranking.world_size;
  common.nodes = static_cast<std::uint32_t>(chosen.size());
  common.master = master_of(*chosen[ranking.order[0]], chosen.size());
  common.store_on_server = settings_.store_on_server;
  common.secret = round_secret(common_.seed++);
  common.excluded = offenders_.excluded(now);
  note("round " + std::to_string(number_) + " forms: " + count_of(common.nodes, "node") + ", " +
       count_of(common.world_size, "worker") + " (" + reason + ")");

  round_.emplace(common.round);
  recovered_ = false;
  formed_ = true;
  recovery_.reset();  // A round that may form is above all that recovery waits to hear of.
  master_up_ = false;
  not_before_.reset();
  last_loss_.reset();
  refused_.clear();
  last_round_ = common.round;
  phase_ = Running{};
  const auto addresses = admitted(chosen);
  if (settings_.store_on_server)
    actions_.emplace_back(action::OpenStore{id_, common.round, addresses, common.secret});
  for (std::size_t node_rank = 0; node_rank < ranking.order.size(); ++node_rank) {
    auto& member = *chosen[ranking.order[node_rank]];
    const auto& ranks = ranking.ranks[node_rank];
    Round::Place place;
    place.incarnation = member.hello.incarnation;
    place.node = member.hello.name;
    place.machine = member.hello.machine;
    place.slots = member.hello.slots;
    place.assignment = common;
    place.assignment.rank_offset = ranks.rank_offset;
    place.assignment.local_rank_offset = ranks.local_rank_offset;
    place.assignment.local_world_size = ranks.local_world_size;
    place.assignment.node_rank = ranks.node_rank;
    place.assignment.role_rank_offset = ranks.role_rank_offset;
    place.assignment.role_world_size = ranks.role_world_size;
    if (node_rank == 0) place.assignment.admitted = addresses;
    roster_.change(member, [&](Member& one) {
      one.holds = common.round;
      one.served = true;
    });
    member.told.clear();
    order(member, round_->add(std::move(place)).assignment);
  }
  changed(now);
}

/// A larger round is possible: when to stop the running one for it.
std::optional<TimePoint> Job::scale_up_at(const Running& running) const {
  const auto& counts = roster_.counts();
  if (settings_.scale_up == ScaleUp::Never || counts.ready == 0 || counts.silent_holders > 0 ||
      !running.spare_came || running.preparing || round_->any_succeeded() || recovery_)
    return std::nullopt;
  const auto present = round_->places().size();
  const auto larger = sizes_.legal(present + counts.ready);
  if (!larger || *larger <= present) return std::nullopt;
  const auto batch_ends =
      *running.spare_came + (*larger == sizes_.largest() ? kScaleUpFull : kScaleUpQuiet);
  if (settings_.scale_up == ScaleUp::Now) return batch_ends;
  if (!running.saved || *running.saved < batch_ends) return std::nullopt;  // The next Progress may.
  return running.saved;
}

TimePoint Job::join_deadline(const Gathering& gathering) const {
  const auto since = gathering.forming.since();
  const bool is_first = common_.first_here && !(recovery_ && recovery_->any_told());
  const bool recovers = settings_.lease > Duration::zero() && !is_first;
  return (recovers ? std::max(since, common_.recovery_ends) : since) + settings_.join_timeout;
}

std::optional<TimePoint> Job::phase_deadline() const {
  std::optional<TimePoint> next;
  const auto add = [&next](std::optional<TimePoint> deadline) {
    if (deadline && (!next || *deadline < *next)) next = deadline;
  };
  if (recovery_) add(common_.recovery_ends);
  if (const auto* gathering = std::get_if<Gathering>(&phase_)) {
    if (leaving_since_) add(*leaving_since_ + kLeaveWindow);
    add(not_before_);
    add(forming_deadline_);
    if (roster_.size() == 0) {
      if (!recovery_) add(deserted_since_ + settings_.join_timeout);
    } else if (!sizes_.legal(presence().there)) {
      add(join_deadline(*gathering));
    }
  }
  if (const auto* running = std::get_if<Running>(&phase_)) {
    if (running->preparing) add(running->preparing->deadline);
    add(scale_up_at(*running));
  }
  if (const auto* told = std::get_if<Told>(&phase_)) add(told->patience_ends);
  return next;
}

}  // namespace muster::rendezvous

#include "rendezvous/core/job.hpp"

#include "base/text.hpp"
#include "rendezvous/core/settings.hpp"
#include "rendezvous/core/verdict.hpp"

#include <algorithm>
#include <csignal>
#include <limits>
#include <utility>

namespace muster::rendezvous {
namespace {

constexpr std::size_t kIncarnationShown = 12;

}  // namespace

Job::Job(std::string id, const Hello& first, TimePoint now, Common& common)
    : id_(std::move(id)),
      launch_tag_(first.launch_tag),
      settings_(first.settings),
      settings_of_(first.name),
      sizes_(sizes_of(first.settings)),
      common_(common),
      phase_(Gathering{Forming(now, Forming::After::Nothing)}),
      roster_(first.settings.lease) {
  if (settings_.lease > Duration::zero() && now < common_.recovery_ends) recovery_.emplace();
}

std::optional<Refusal> Job::refusal(const Hello& hello) const {
  const auto job = "job \"" + id_ + "\"";
  if (hello.launch_tag != launch_tag_) {
    const auto words = [](const std::string& tag) {
      return tag.empty() ? std::string("no launch tag") : "launch tag " + tag;
    };
    return Refusal{job + " runs with " + words(launch_tag_) + ", and node " + hello.name +
                       " belongs to " + words(hello.launch_tag) +
                       ": wait for its end, or take another --rdzv-id",
                   kUsage};
  }
  if (settings_.lease == Duration::zero() && roster_.size() > 0) {
    return Refusal{job + " can have one node only, and that is node " + settings_of_ + ": node " +
                       hello.name + " comes too many; give all nodes --nnodes with their number",
                   kUsage};
  }
  const auto found = differences(settings_, hello.settings);
  if (found.empty()) return std::nullopt;
  std::string text = "the nodes of " + job + " do not agree:";
  for (const auto& difference : found) {
    text += " " + difference.setting + " is " + difference.first + " on " + settings_of_ + " and " +
            difference.second + " on " + hello.name + ";";
  }
  return Refusal{text + " give all nodes the same", kUsage};
}

bool Job::knows(const Incarnation& incarnation) const { return attended_.contains(incarnation); }

void Job::greet(TimePoint now, Greeting greeting) {
  auto& hello = greeting.hello;
  const auto held = std::exchange(hello.held, {});
  const auto link = greeting.link;

  if (const auto found = gone_.find(hello.incarnation); found != gone_.end()) {
    const bool nothing_left = !held.round || held.empty;
    if (found->second.for_good || !nothing_left) {
      actions_.emplace_back(action::Send{link, Welcome{common_.version, common_.embedded}});
      actions_.emplace_back(action::Send{link, Pong{hello.ping, true}});
      hello.held = held;
      // Of ranks that were given away.
      hello.held.failures.clear();
      hello.held.victims.clear();
      if (!found->second.for_good) found->second.greeting = std::move(greeting);
      return;
    }
    gone_.erase(found);
  }

  auto* member = roster_.find(hello.incarnation);
  if (member != nullptr && hello.ping <= member->ping) {
    note(action::Note::Level::Debug, "an old Hello of node " + hello.name + " came late: ignored");
    actions_.emplace_back(action::Close{link});
    return;
  }
  const bool is_new = member == nullptr;
  if (is_new) {
    member = &roster_.add(now, std::move(hello));
    if (attended_.size() < kMostAttended) attended_.insert(member->hello.incarnation);
    by_machine_[member->hello.machine].insert(member->hello.incarnation);
  } else {
    if (member->link) actions_.emplace_back(action::Close{*member->link});
    // What names its place stays as it was said first.
    hello.machine = member->hello.machine;
    hello.node_rank = member->hello.node_rank;
    roster_.change(*member, [&](Member& one) { one.hello = std::move(hello); });
    answer(now, *member);
  }
  roster_.change(*member, [&](Member& one) { one.link = link; });
  member->peer = std::move(greeting.peer);
  member->local = std::move(greeting.local);
  member->ping = member->hello.ping;
  member->told.clear();
  member->repeats_leaving = member->departure && member->departure->signal != 0;
  note_server_address(*member);
  send(*member, Welcome{common_.version, common_.embedded});
  send(*member, Pong{member->ping, false});

  learn(now, *member, held);
  if (is_new) welcome(now, *member);
  resume(now, *member, held);
  entrust(*member);
  advance(now);
}

/// A node that was not in the roster before.
void Job::welcome(TimePoint now, Member& member) {
  note(called(member.hello) + " (" + member.peer + ", " + count_of(member.hello.slots, "worker") +
       ") attends");
  if (offenders_.sentence(now, member.hello.machine) != nullptr)
    roster_.change(member, [](Member& one) { one.cooling = true; });
  claim(now, member);
  if (auto* gathering = std::get_if<Gathering>(&phase_)) gathering->forming.arrived(now);
  if (auto* running = std::get_if<Running>(&phase_)) running->spare_came = now;
  changed(now);
}

/// Its lease is renewed. One that was silent is as good as one that has come.
void Job::answer(TimePoint now, Member& member) {
  const bool was_silent = !member.there;
  roster_.answered(now, member);
  if (!was_silent) return;
  auto* running = std::get_if<Running>(&phase_);
  if (running != nullptr && !member.holds) running->spare_came = now;
  changed(now);
}

void Job::hear(TimePoint now, LinkId link, const Incarnation& incarnation,
               const AgentMessage& message) {
  if (const auto found = gone_.find(incarnation); found != gone_.end()) {
    hear_of_gone(now, link, found->second, message);
    return;
  }
  auto* member = roster_.find(incarnation);
  if (member == nullptr || member->link != link) return;  // Not of its newest Hello.
  if (const auto* ping = std::get_if<Ping>(&message)) {
    this->ping(now, *member, *ping);
    return;
  }
  std::visit([&](const auto& report) { on(now, *member, report); }, std::get<Report>(message));
  advance(now);
}

void Job::ping(TimePoint now, Member& member, const Ping& ping) {
  member.ping = std::max(member.ping, ping.number);
  member.memory_used = ping.memory_used;
  member.memory_limit = ping.memory_limit;
  const bool was_silent = !member.there;
  answer(now, member);
  send(member, Pong{ping.number, false});
  if (was_silent) advance(now);
}

/// Its ranks were given away. Once it says that nothing is left of them it is a node like any
/// other.
void Job::hear_of_gone(TimePoint now, LinkId link, Gone& gone, const AgentMessage& message) {
  if (const auto* ping = std::get_if<Ping>(&message)) {
    if (gone.greeting)
      gone.greeting->hello.ping = std::max(gone.greeting->hello.ping, ping->number);
    actions_.emplace_back(action::Send{link, Pong{ping->number, true}});
    return;
  }
  const auto& report = std::get<Report>(message);
  if (gone.for_good || !gone.greeting || gone.greeting->link != link) return;
  auto& held = gone.greeting->hello.held;
  if (const auto* empty = std::get_if<Empty>(&report);
      empty != nullptr && held.round == empty->round) {
    held.empty = true;
    gone.greeting->hello.store = empty->next_store;
    greet(now, *std::exchange(gone.greeting, std::nullopt));
  }
}

void Job::hang_up(TimePoint now, LinkId link, const Incarnation& incarnation) {
  auto* member = roster_.find(incarnation);
  if (member == nullptr || member->link != link) return;
  // It proves nothing: the lease decides.
  roster_.change(*member, [](Member& one) { one.link.reset(); });
  if (member->dismissed) remove(now, incarnation, "it was dismissed", true);
  advance(now);
}

void Job::part(TimePoint now, const Incarnation& incarnation, const Farewell& farewell) {
  if (farewell.round) {
    common_.epochs.hear(*farewell.round);
    number_ = std::max(number_, farewell.round->number);
    if (recovery_) recovery_->departed(incarnation, *farewell.round);
    if (round_ && recovered_ && round_->id() == *farewell.round)
      lose_unseen(now, incarnation, farewell.reason);
  }
  if (const auto* member = roster_.find(incarnation)) {
    const auto how = farewell.reason.empty() ? "it said farewell" : farewell.reason;
    const bool was_killed = how.find(signal_name(SIGKILL)) != std::string::npos;
    remove(now, incarnation, was_killed ? how + memory_note(*member) : how, true);
  } else {
    remember_gone(incarnation, {.for_good = true, .greeting = {}});
  }
  advance(now);
}

void Job::tick(TimePoint now) {
  for (const auto& incarnation : roster_.expire(now)) {
    remove(now, incarnation,
           "its lease ended: no ping for " + duration_text(roster_.give_away_after()) +
               memory_note(*roster_.find(incarnation)),
           false);
  }
  for (const auto& machine : cooling_.take_over(now)) cool(now, machine);
  settle_claims(now);
  advance(now);
}

std::vector<action::Action> Job::take_actions() { return std::exchange(actions_, {}); }

std::optional<TimePoint> Job::next_deadline() const {
  std::optional<TimePoint> next;
  for (const auto& deadline : {roster_.next_deadline(), cooling_.earliest(), settle_claims_at_,
                               tell_at_, phase_deadline()}) {
    if (deadline && (!next || *deadline < *next)) next = deadline;
  }
  return next;
}

Round::Place* Job::place_of(const Member& member, RoundId round) {
  if (!round_ || round_->id() != round) return nullptr;
  auto* place = round_->find(member.hello.incarnation);
  return place == nullptr || place->over() ? nullptr : place;
}

void Job::remember_gone(const Incarnation& incarnation, Gone gone) {
  if (gone_.insert_or_assign(incarnation, std::move(gone)).second)
    gone_in_order_.push_back(incarnation);
  if (gone_in_order_.size() <= kMostGone) return;
  gone_.erase(gone_in_order_.front());
  gone_in_order_.pop_front();
}

/// The agent is gone: its ranks are free.
// NOLINTNEXTLINE(performance-unnecessary-value-param): a reference may be to the member's own.
void Job::remove(TimePoint now, Incarnation incarnation, const std::string& how, bool for_good) {
  auto& member = *roster_.find(incarnation);
  const bool expected = member.departure.has_value() || verdict_.has_value();
  note(expected ? action::Note::Level::Info : action::Note::Level::Warn,
       called(member.hello) + (expected ? " is gone: " : " was lost: ") + how);
  if (recovery_ && member.holds) recovery_->departed(incarnation, *member.holds);
  auto* place = round_ ? round_->find(incarnation) : nullptr;
  if (place != nullptr && !place->over()) {
    round_->note_gone(*place);
    fence(now, member, *place, how);
  } else if (!expected && member.served) {
    blame(now, member.hello.machine, member.joined, "lost: " + how);
  }

  Gone gone{.for_good = for_good, .greeting = {}};
  if (!for_good) {
    gone.greeting =
        Greeting{member.link.value_or(LinkId{}), member.hello, member.peer, member.local};
    gone.greeting->hello.held.round = member.holds;
    gone.greeting->hello.held.empty = !member.holds;
  }
  free_claim(now, member);
  if (const auto machine = by_machine_.find(member.hello.machine); machine != by_machine_.end()) {
    machine->second.erase(incarnation);
    if (machine->second.empty()) by_machine_.erase(machine);
  }
  std::erase(leavers_, incarnation);
  roster_.remove(incarnation);
  remember_gone(incarnation, std::move(gone));
  changed(now);
}

/// A member of a round that we learned of is gone before it came to us.
void Job::lose_unseen(TimePoint now, const Incarnation& incarnation, const std::string& how) {
  if (round_->find(incarnation) != nullptr) return;
  WorkerFailure failure;
  failure.cause = Cause::LostNode;
  // Which rank it had is not known.
  failure.node_rank = {std::numeric_limits<std::uint32_t>::max()};
  failure.node = "of incarnation " + incarnation.value.substr(0, kIncarnationShown);
  failure.detail = how;
  if (!round_->add_failure(failure)) return;
  if (!round_->stop()) stop_round(now, describe_failure(failure), Round::StoppedFor::Failure);
}

/// The workers of a place ended with their node, or with its lease. What had succeeded before has
/// succeeded, unless the round was being stopped.
void Job::fence(TimePoint now, Member& member, Round::Place& place, const std::string& how) {
  if (place.succeeded && !round_->stop()) return;
  const bool leaves = member.departure.has_value();
  if (!leaves) blame(now, member.hello.machine, member.joined, "lost: " + how);
  if (place.stopped) {  // What ended the round was before that.
    if (!round_->stop()) stop_round(now, "node " + place.node + " left", Round::StoppedFor::Change);
    return;
  }
  // Also of one that was about to leave: its peers may have failed of it.
  WorkerFailure failure;
  failure.cause = Cause::LostNode;
  failure.rank = place.assignment.rank_offset;
  failure.node_rank = place.assignment.node_rank;
  failure.node = place.node;
  failure.detail = how;
  round_->add_failure(failure);
  if (round_->stop()) return;
  if (leaves) {
    stop_round(now, "node " + place.node + " left", Round::StoppedFor::Change);
  } else {
    stop_round(now, describe_failure(failure), Round::StoppedFor::Failure);
  }
}

void Job::on(TimePoint, Member&, const Hello&) {}  // A connection says it once, as a Greeting.

void Job::on(TimePoint, Member& member, const Acknowledged& report) {
  auto* place = place_of(member, report.round);
  if (place == nullptr || place->acknowledged) return;
  place->acknowledged = true;
  if (place->assignment.node_rank != NodeRank{0} || master_up_) return;
  master_up_ = true;
  for (const auto& other : round_->places()) {
    if (other.over()) continue;
    if (const auto* peer = roster_.find(other.incarnation)) order(*peer, MasterUp{report.round});
  }
}

void Job::on(TimePoint now, Member& member, const Unreachable& report) {
  const auto* place = place_of(member, report.round);
  const bool is_repeated = std::find(unreachable_from_.begin(), unreachable_from_.end(),
                                     member.hello.incarnation) != unreachable_from_.end();
  if (place == nullptr || is_repeated) return;
  unreachable_.push_back(report.detail);
  unreachable_from_.push_back(member.hello.incarnation);
  const auto text = called(member.hello) + " can't reach the workers' store: " + report.detail;
  note(action::Note::Level::Warn, text);
  if (!round_->stop()) stop_round(now, text, Round::StoppedFor::Change);
}

void Job::on(TimePoint, Member& member, const Started& report) {
  auto* place = place_of(member, report.round);
  if (place == nullptr) return;
  place->started = true;
  any_started_ = true;
}

void Job::on(TimePoint now, Member& member, const Failed& report) {
  auto* place = place_of(member, report.round);
  if (place == nullptr) return;
  any_started_ = any_started_ || report.started > 0 || report.failure.status;
  auto failure = report.failure;
  if (failure.node.empty() && place->assignment.nodes > 1) failure.node = member.hello.name;
  if (failure.status && was_asked_to_end(*place, failure)) {
    round_->add_victims({{failure.rank, *failure.status}});
    return;
  }
  if (!round_->add_failure(failure)) return;
  const bool is_told = failure.detail.empty() || failure.cause == Cause::LostNode;
  note(action::Note::Level::Warn,
       describe_failure(failure) + (is_told ? "" : ": " + failure.detail));
  if (!round_->stop()) stop_round(now, describe_failure(failure), Round::StoppedFor::Failure);
}

/// A worker ended so because it, or its peer, was asked to save or to leave.
bool Job::was_asked_to_end(const Round::Place& place, const WorkerFailure& failure) const {
  if (round_->is_excused() && failure.cause == Cause::PeerLoss) return true;
  if (!round_->stop()) {
    // It ends anyway: what fails of itself does so again in the next one.
    const auto* running = std::get_if<Running>(&phase_);
    return running != nullptr && running->preparing && failure.cause == Cause::WorkerError;
  }
  switch (round_->stopped_for()) {
    case Round::StoppedFor::Failure:
      return false;
    case Round::StoppedFor::Leaving:
      return round_->failures().empty();
    case Round::StoppedFor::Change:
      return place.stopped;
  }
  return false;
}

void Job::on(TimePoint, Member& member, const Succeeded& report) {
  auto* place = place_of(member, report.round);
  if (place == nullptr) return;
  any_started_ = true;
  round_->note_succeeded(*place);
}

void Job::on(TimePoint, Member& member, const Stopped& report) {
  auto* place = place_of(member, report.round);
  if (place != nullptr && round_->stop()) round_->note_stopped(*place);
}

void Job::on(TimePoint now, Member& member, const Empty& report) {
  if (!report.next_store.host.empty() || report.next_store.port != 0)
    member.hello.store = report.next_store;
  if (auto* place = place_of(member, report.round)) {
    round_->add_victims(report.victims);
    const bool failed = std::any_of(round_->failures().begin(), round_->failures().end(),
                                    [&](const WorkerFailure& failure) {
                                      return failure.node_rank == place->assignment.node_rank;
                                    });
    if (!place->succeeded && !round_->stop() && !failed)
      fence(now, member, *place, "its workers ended with its lease");
    empty(now, member, *place);
  } else if (member.holds == report.round) {
    roster_.change(member, [](Member& one) { one.holds.reset(); });
  }
}

/// Nothing of the round is left on the node.
void Job::empty(TimePoint now, Member& member, Round::Place& place) {
  round_->note_empty(place);
  roster_.change(member, [](Member& one) { one.holds.reset(); });
  changed(now);
}

void Job::on(TimePoint now, Member& member, const Stuck& report) {
  const bool holds = member.holds == report.round;
  auto* place = place_of(member, report.round);
  if (!holds && place == nullptr) return;
  any_stuck_ = true;
  std::string pids;
  for (const int pid : report.pids) {
    stuck_pids_.push_back(pid);
    pids += " " + std::to_string(pid);
  }
  note(action::Note::Level::Warn,
       called(member.hello) + " is excluded: it could not kill these processes:" + pids);
  roster_.change(member, [](Member& one) {
    one.stuck = true;
    one.holds.reset();
  });
  free_claim(now, member);
  if (place == nullptr) return;
  if (!place->succeeded && !round_->stop())
    stop_round(now, called(member.hello) + " has processes that can't be killed",
               Round::StoppedFor::Change);
  round_->note_empty(*place);
}

void Job::on(TimePoint now, Member& member, const Progress& report) {
  auto* place = place_of(member, report.round);
  if (place == nullptr) return;
  // Of a round that ran before this server started, the first word tells of no moment.
  const bool tells_when = !recovered_ || !place->progress.empty();
  const bool was_silent = !round_->has_progress();
  const bool saved = round_->note_progress(now, *place, report.workers) && tells_when;
  if (auto* running = std::get_if<Running>(&phase_); running != nullptr && saved)
    running->saved = now;
  if (was_silent && round_->has_progress() && settings_.scale_up == ScaleUp::Checkpoint)
    changed(now);  // What spares wait for.
}

void Job::on(TimePoint, Member& member, const StoreRefused& report) {
  if (place_of(member, report.round) != nullptr) tell_turned_away(report.address, &member);
}

void Job::turned_away(const std::string& address) { tell_turned_away(address, nullptr); }

/// Whose address it is may be known to nobody but the node itself: all of the round are told.
/// `host`: of the store; nullptr: the server.
void Job::tell_turned_away(const std::string& address, const Member* host) {
  if (!round_ || refused_.size() >= kMostRefused || !refused_.insert(address).second) return;
  const auto where =
      host == nullptr ? std::string("the node that hosts the rendezvous") : called(host->hello);
  const auto text = "the workers' store on " + where + " turned away " + address +
                    ": if workers of this job come from there, give that node --store-allow " +
                    address + " (or any)";
  note(action::Note::Level::Warn, text);
  for (const auto& place : round_->places()) {
    const auto* peer = place.over() ? nullptr : roster_.find(place.incarnation);
    if (peer != nullptr && peer != host) send(*peer, Waiting{text, {}});
  }
}

void Job::on(TimePoint, Member& member, const VerdictSeen&) {
  roster_.change(member, [](Member& one) { one.verdict_seen = true; });
  if (!member.released) return;
  member.dismissed = true;
  send(member, Dismissal{});
}

}  // namespace muster::rendezvous

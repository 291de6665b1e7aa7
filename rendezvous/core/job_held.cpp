#include "rendezvous/core/job.hpp"
#include "rendezvous/core/verdict.hpp"

#include <algorithm>
#include <csignal>
#include <tuple>
#include <utility>

// What agents bring along in their Hellos: after a break of the connection, and to a server that
// started anew (protocol.md 2, 6).
namespace muster::rendezvous {

/// The facts of the job that any of its agents may know better than we.
void Job::learn(TimePoint now, Member& member, const Held& held) {
  for (const auto& round : {held.highest, held.round.value_or(RoundId{})}) {
    common_.epochs.hear(round);
    number_ = std::max(number_, round.number);
  }
  if (recovery_) recovery_->hear(member.hello.incarnation, held);
  if (held.stuck) roster_.change(member, [](Member& one) { one.stuck = true; });
  learn_wishes(member, held.kept);
  if (!held.round) return;
  continued_ = continued_ || (!formed_ && !held.verdict);
  member.served = true;
  last_round_ = std::max(last_round_, held.round);  // Also where only its verdict is told here.
  attempts_ = std::max(attempts_, held.attempts);
  restarts_ = std::max(restarts_, held.restarts);
  const auto progress = std::pair(best_step_, fruitless_);
  std::tie(best_step_, fruitless_) = std::max(progress, {held.best_step, held.fruitless});
  any_started_ = any_started_ || held.started || held.succeeded;
  if (formed_) return;  // What follows is older than what we know.
  for (const auto& machine : held.excluded) {
    offenders_.heard_of(now, machine);
    cool(now, machine);
  }
}

/// What an operator asked for of a server before this one.
void Job::learn_wishes(Member& member, const Keep& kept) {
  member.kept = kept;
  if (kept.sizes && !sizes_by_hand_) {
    const Sizes sizes{kept.sizes->first, kept.sizes->second, sizes_.step};
    if (!what_is_wrong_with(sizes)) {
      sizes_by_hand_ = true;
      sizes_ = sizes;
    }
  }
  if (kept.ended && !ordered_end_ && !verdict_ && !formed_) ordered_end_ = operators_end();
}

/// Says again what the member may have missed, and takes up the round that it holds.
void Job::resume(TimePoint now, Member& member, const Held& held) {
  if (member.released && !held.verdict) {  // It was told on a connection that it has lost.
    order(member, own_verdict(member));
    return;
  }
  if (held.kept.drained && !member.departure) {
    const Departure departure{.drained = true, .reason = "an operator drained the node"};
    roster_.change(member, [&](Member& one) { one.departure = departure; });
    leavers_.push_back(member.hello.incarnation);
    leaving_since_ = leaving_since_.value_or(now);
  }
  if (held.verdict && held.verdict->alone) {  // It was told to leave, and only waits for the leave.
    if (held.round && held.empty && !verdict_) bear_witness(now, member, held);
    if (!member.departure) {
      roster_.change(
          member, [&](Member& one) { one.departure = Departure{.reason = held.verdict->summary}; });
    }
    roster_.change(member, [](Member& one) { one.released = one.verdict_seen = true; });
    member.dismissed = true;
    send(member, Dismissal{});
    return;
  }
  // Without a launch tag an id may be used again: then what this one knows is the end of another
  // job.
  const bool is_older =
      (formed_ && !continued_) || (round_ && held.verdict && held.verdict->round &&
                                   *held.verdict->round < round_->id() && launch_tag_.empty());
  if (held.verdict && !verdict_ && is_older) {
    note(called(member.hello) + " knows the end of an older job of this id: dismissed");
    roster_.change(member, [&](Member& one) {
      one.departure = Departure{.reason = "its job has ended"};
      one.released = one.verdict_seen = true;
    });
    member.dismissed = true;
    send(member, Dismissal{});
    return;
  }
  if (held.verdict && !verdict_) {
    note(called(member.hello) + " knows the verdict");
    roster_.change(member, [](Member& one) { one.holds.reset(); });
    if (round_) round_.reset();
    end(now, *held.verdict);
    return;
  }
  if (verdict_) {
    send_verdict(member);
    return;
  }

  auto* place = round_ ? round_->find(member.hello.incarnation) : nullptr;
  if (place == nullptr) {
    if (held.round) take_up(now, member, held);
    note_unseen(now);
  } else if (held.round == round_->id()) {
    apply(now, member, *place, held);
    note_unseen(now);
  } else if (!held.round || *held.round < round_->id()) {
    if (place->over()) return;
    // It takes no order from its old connection any more, so it never had this Assignment and
    // never will, unless it is sent again.
    if (!round_->stop()) {
      order(member, place->assignment);
      say_what_stands(now, member);
      return;
    }
    round_->note_stopped(*place);
    empty(now, member, *place);
  } else {  // Another server ordered since.
    if (!place->over()) {
      round_->note_gone(*place);
      fence(now, member, *place, "it runs a round of another server");
    }
    take_up(now, member, held);
  }
}

/// What a node that leaves has seen may explain what others report.
void Job::bear_witness(TimePoint now, Member& member, const Held& held) {
  auto* place = round_ ? round_->find(member.hello.incarnation) : nullptr;
  if (place == nullptr) {
    take_up(now, member, held);
  } else if (held.round == round_->id()) {
    apply(now, member, *place, held);
  }
}

/// Members of a round that we learned of, and that are gone as we learned as well.
void Job::note_unseen(TimePoint now) {
  if (!recovery_ || !recovered_ || !round_) return;
  if (const auto gone = recovery_->gone()) lose_unseen(now, *gone, "it is gone");
}

/// A round that we did not give out, or no longer know.
void Job::take_up(TimePoint now, Member& member, const Held& held) {
  const auto round = *held.round;
  const bool ours_to_take =
      in_recovery(now) && !formed_ && (!round_ || recovered_) && round > concluded_;
  const bool highest = ours_to_take && recovery_->highest() == round;
  if (highest && (!round_ || round_->id() < round)) {
    if (round_) {  // It was not the highest after all.
      const auto lower = std::exchange(round_, std::nullopt);
      for (const auto& place : lower->places()) {
        auto* holder = roster_.find(place.incarnation);
        if (holder != nullptr && !place.over()) stop_stray(now, *holder, lower->id());
      }
    }
    note("round " + std::to_string(round.number) + " goes on: node " + member.hello.name +
         " reports it");
    round_.emplace(round);
    recovered_ = true;
    master_up_ = false;
    phase_ =
        Running{.preparing = {}, .spare_came = now, .saved = {}};  // Those that came before it.
    last_round_ = round;
  }
  if (round_ && recovered_ && round_->id() == round) {
    Round::Place place;
    place.incarnation = member.hello.incarnation;
    place.node = member.hello.name;
    place.machine = member.hello.machine;
    place.slots = member.hello.slots;
    place.assignment.round = round;
    place.assignment.node_rank = held.node_rank;
    place.assignment.nodes = held.nodes;
    roster_.change(member, [&](Member& one) { one.holds = round; });
    apply(now, member, round_->add(std::move(place)), held);
  } else if (!held.empty) {
    stop_stray(now, member, round);
  }
}

/// Brings a member's place in the standing round up to what its agent says, as if its reports had
/// just come, and says again what was ordered since.
void Job::apply(TimePoint now, Member& member, Round::Place& place, const Held& held) {
  const bool was_stopped_here = round_->stop().has_value();
  if (!place.over()) {
    const auto round = round_->id();
    if (held.excused) round_->excuse();
    if (held.acknowledged) on(now, member, Acknowledged{round});
    if (held.started) on(now, member, Started{round});
    if (held.succeeded) on(now, member, Succeeded{round});
    for (const auto& failure : held.failures)
      on(now, member, Failed{round, failure, held.started ? member.hello.slots : 0});
    if (!held.unbroken) fence(now, member, place, "its lease ended");
    const bool was_stopped = held.stopped || (held.empty && !held.succeeded);
    if (was_stopped && !round_->stop())
      stop_round(now, "it was being stopped when the server started anew",
                 Round::StoppedFor::Change);
    if (held.stopped) round_->note_stopped(place);
    if (held.empty) {
      round_->add_victims(held.victims);
      empty(now, member, place);
    }
  }
  if (place.over()) {
    roster_.change(member, [](Member& one) { one.holds.reset(); });
    return;
  }
  if (round_->stop()) {
    if (was_stopped_here) send_stop(member, place);
    return;
  }
  say_what_stands(now, member);
}

/// Beside its Assignment.
void Job::say_what_stands(TimePoint now, const Member& member) {
  if (master_up_) order(member, MasterUp{round_->id()});
  const auto* running = std::get_if<Running>(&phase_);
  if (running == nullptr) return;
  if (running->preparing) {
    order(member, prepare_order(now, *running->preparing, member));
  } else if (member.departure && member.departure->drained) {  // Under a server before this one.
    prepare(now, called(member.hello) + ": " + member.departure->reason, Duration::zero());
  }
}

/// It holds a round that does not stand: the next one waits until nothing of that is left.
void Job::stop_stray(TimePoint now, Member& member, RoundId round) {
  roster_.change(member, [&](Member& one) { one.holds = round; });
  note(called(member.hello) + " holds round " + std::to_string(round.number) +
       ", which does not stand: stopped");
  Stop stop;
  stop.round = round;
  stop.signal = SIGTERM;
  stop.reason = "the round does not stand any more";
  order(member, stop);
  changed(now);
}

bool Job::in_recovery(TimePoint now) const { return recovery_ && now < common_.recovery_ends; }

bool Job::recovery_allows(TimePoint now) const {
  if (!in_recovery(now)) return true;
  if (recovery_->highest()) return recovery_->complete();
  if (recovery_->any_told() || !common_.first_here) return false;
  const auto legal = sizes_.legal(presence().there);
  if (!legal) return false;
  const auto expected = Forming::expected(sizes_, settings_);
  return *legal == sizes_.largest() || (expected && *legal >= *expected);
}

}  // namespace muster::rendezvous

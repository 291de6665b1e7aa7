#include "agent/core/attendee.hpp"

#include "base/exit_codes.hpp"
#include "base/exit_status.hpp"

#include <algorithm>

namespace muster::agent {
namespace {

/// A server may give ranks away 1.25 L after its last answer: so long it may be needed still.
Duration with_margin(Duration lease) { return lease + lease / 4; }

/// In the place of a job's lease that has none: for ever, in effect, with a ping now and then.
constexpr Duration kNoLease = std::chrono::hours(24 * 365);

std::string seconds_text(Duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

/// The round that a report is of; nullopt: of none.
std::optional<RoundId> round_of(const Report& report) {
  return std::visit(
      [](const auto& said) -> std::optional<RoundId> {
        if constexpr (requires { said.round; }) return said.round;
        return std::nullopt;
      },
      report);
}

bool ends_a_round(const Report& report) {
  return std::holds_alternative<Empty>(report) || std::holds_alternative<Stuck>(report);
}

}  // namespace

Attendee::Attendee(Settings settings)
    : settings_(std::move(settings)),
      lease_(settings_.hello.settings.lease > Duration::zero() ? settings_.hello.settings.lease
                                                               : kNoLease),
      random_state_(settings_.seed) {}

std::vector<Attendee::Action> Attendee::start(TimePoint now) {
  actions_.clear();
  started_ = heard_ = now;
  dial();
  return std::exchange(actions_, {});
}

std::vector<Attendee::Action> Attendee::step(TimePoint now, const Event& event) {
  if (over_) return {};
  actions_.clear();
  see_whether_the_lease_ended(now);  // Before anything that arrived meanwhile could renew it.
  std::visit([this, now](const auto& happened) { on(now, happened); }, event);
  if (!over_) leave_when_due(now);
  if (!over_) keep_in_touch(now);
  return std::exchange(actions_, {});
}

std::optional<TimePoint> Attendee::next_deadline() const {
  if (over_) return std::nullopt;
  auto next = leaves_at();
  const auto consider = [&next](std::optional<TimePoint> at) {
    if (at && (!next || *at < *next)) next = at;
  };
  consider(redial_at_);
  if (voice_) consider(ping_at_);
  if (voice_ && !dialled_) consider(quiet_at_);
  if (holds() && !fenced_) {
    consider(lease_ends_);
    if (!half_said_ && answered_) consider(answered_->at + lease_ / 2);
  }
  return next;
}

std::optional<RoundId> Attendee::holds() const { return held_.empty ? std::nullopt : held_.round; }

void Attendee::on(TimePoint now, const Connected& connected) {
  if (dialled_ != connected.line) return;
  dialled_.reset();
  if (parting_) {
    actions_.emplace_back(HangUp{connected.line});
    return;
  }
  greet(now, connected.line);
}

void Attendee::on(TimePoint now, const Dropped& dropped) {
  if (former_ == dropped.line) former_.reset();
  const bool was_dialled = dialled_ == dropped.line;
  const bool was_voice = voice_ == dropped.line;
  if (!was_dialled && !was_voice) return;
  if (was_dialled) dialled_.reset();
  if (was_voice) voice_.reset();
  report_trouble(dropped.why);
  if (parting_ || dialled_) return;
  // A reset is redialled at once; whoever resets each time is given more and more time.
  if (was_voice && failed_dials_ == 0) {
    ++failed_dials_;
    dial();
    return;
  }
  redial_after_failure(now);
}

void Attendee::on(TimePoint now, const Received& received) {
  const bool is_pong = std::holds_alternative<Pong>(received.message);
  if (received.line != voice_ && !(is_pong && received.line == former_)) return;
  std::visit([this, now, &received](const auto& message) { hear(now, received.line, message); },
             received.message);
}

void Attendee::on(TimePoint, const Lapsed&) { end_lease(); }

void Attendee::on(TimePoint, const Ticked&) {}

void Attendee::dial() {
  redial_at_.reset();
  if (dialled_) return;
  dialled_ = Line{next_line_++};
  actions_.emplace_back(Dial{*dialled_});
}

void Attendee::redial_after_failure(TimePoint now) {
  constexpr int kDoublings = 10;  // Beyond kLongestBackoff.
  const auto longest = std::min(kLongestBackoff, lease_ / kBackoffsPerLease);
  const auto wait =
      std::min<Duration>(kFirstBackoff * (1 << std::min(failed_dials_, kDoublings)), longest);
  ++failed_dials_;
  const auto half = wait / 2;
  const auto jitter = Duration(
      static_cast<Duration::rep>(random() % (static_cast<std::uint64_t>(half.count()) + 1)));
  redial_at_ = now + half + jitter;
}

void Attendee::hang_up(std::optional<Line>& line) {
  if (line) actions_.emplace_back(HangUp{*line});
  line.reset();
}

/// Says Hello on a new connection, and again what was said of the round: whoever listens there may
/// have forgotten everything, or never have known it.
void Attendee::greet(TimePoint now, Line line) {
  if (voice_) {
    hang_up(former_);
    former_ = voice_;  // Answers may be on their way on it.
  }
  voice_ = line;

  Hello hello = settings_.hello;
  hello.held = held_;
  hello.ping = voice_hello_ = ask(now);
  transmit(Report(std::move(hello)));
  ping(now);
  for (const auto& report : said_) transmit(report);
  if (leaving_) transmit(Report(*leaving_));
  if (noticed_) {
    auto notice = noticed_->notice;
    // Zero would say that it is unknown.
    if (notice.left != Duration::zero())
      notice.left = std::max<Duration>(notice.left - (now - noticed_->at), Duration(1));
    transmit(Report(std::move(notice)));
  }
  if (ended_) transmit(Report(VerdictSeen{}));
  quiet_at_ = now + lease_ / 2;
}

void Attendee::transmit(AgentMessage message) {
  if (voice_) actions_.emplace_back(Transmit{*voice_, std::move(message)});
}

void Attendee::report_trouble(const std::string& why) {
  const bool is_new = why != trouble_;
  trouble_ = why;
  if (!welcomed_) {
    if (is_new) {
      say("no rendezvous server at " + settings_.server + " yet: " + why + "; dialling for " +
          seconds_text(settings_.hello.settings.join_timeout) + " at most");
    }
  } else if (!voice_ && !std::exchange(server_lost_, true)) {
    say("lost the rendezvous server at " + settings_.server + ": " + why +
        "; dialling again, for " + seconds_text(with_margin(lease_) + patience_) + " at most");
  }
}

std::uint64_t Attendee::ask(TimePoint now) {
  const auto old = [this, now](const Asked& asked) {
    return asked.at + kPingsRemembered * lease_ < now;
  };
  std::erase_if(asked_, old);
  asked_.push_back({next_ping_, now});
  return next_ping_++;
}

void Attendee::ping(TimePoint now) {
  transmit(Ping{ask(now)});
  ping_at_ = now + lease_ / kPingsPerLease;
}

/// nullopt: never sent, or too long ago to matter.
std::optional<TimePoint> Attendee::sent_at(std::uint64_t number) const {
  const auto found = std::find_if(asked_.begin(), asked_.end(),
                                  [number](const Asked& asked) { return asked.number == number; });
  if (found == asked_.end()) return std::nullopt;
  return found->at;
}

void Attendee::hear(TimePoint now, Line line, const Pong& pong) {
  if (pong.gone) {
    if (line == voice_) hear_that_we_are_gone(now);
    return;
  }
  const auto at = sent_at(pong.number);
  if (!at) return;
  heard_from_server(now);
  if (line == voice_) hang_up(former_);
  if (answered_ && pong.number <= answered_->number) return;
  answered_ = Asked{pong.number, *at};
  lease_ends_ = *at + lease_;
  half_said_ = false;
  quiet_at_ = std::max(quiet_at_, *at + lease_ / 2);
  renew(now);
}

/// While the tree is being killed the page stays as it is: the keeper helps until nothing is left.
void Attendee::renew(TimePoint now) {
  if (!fenced_ && lease_lives(now)) actions_.emplace_back(Renew{*lease_ends_});
}

void Attendee::hear_that_we_are_gone(TimePoint now) {
  held_.unbroken = false;
  if (!holds()) return;
  heard_ = now;
  fence("the rendezvous server has given this node's ranks away");
}

void Attendee::see_whether_the_lease_ended(TimePoint now) {
  if (lease_ends_ && now >= *lease_ends_) end_lease();
}

void Attendee::end_lease() {
  if (!held_.round) return;
  held_.unbroken = false;
  if (holds())
    fence("the rendezvous server has not answered for a lease of " + seconds_text(lease_));
}

void Attendee::fence(const std::string& reason) {
  if (std::exchange(fenced_, true)) return;
  actions_.emplace_back(Fence{reason});
}

/// Whoever ends the launcher while no server hears of it need not wait for one: the workers have
/// what is left of the lease.
void Attendee::stop_unheard() {
  const bool is_heard = voice_ && !half_said_;
  if (!leaving_ || is_heard || !holds() || held_.stopped || fenced_ || stops_unheard_) return;
  stops_unheard_ = true;
  held_.excused = true;
  Stop stop;
  stop.round = *held_.round;
  stop.signal = leaving_->signal;
  stop.reason = "the launcher got " + signal_name(leaving_->signal) +
                ", and the rendezvous server does not answer";
  stop.blameless = true;
  actions_.emplace_back(Deliver{std::move(stop)});
}

/// Pings, and dials where the server is silent.
void Attendee::keep_in_touch(TimePoint now) {
  stop_unheard();
  if (holds() && !fenced_ && answered_ && !half_said_ && now >= answered_->at + lease_ / 2) {
    half_said_ = true;
    actions_.emplace_back(HalfLease{});
  }
  if (voice_ && now >= ping_at_) ping(now);
  if (parting_) return;
  if (voice_ && !dialled_ && now >= quiet_at_) {
    quiet_at_ = now + lease_ / 2;
    dial();
  }
  if (redial_at_ && now >= *redial_at_) dial();
}

void Attendee::heard_from_server(TimePoint now) {
  heard_ = now;
  failed_dials_ = 0;
  if (std::exchange(server_lost_, false)) {
    trouble_.clear();
    say("the rendezvous server at " + settings_.server + " answers again");
  }
}

void Attendee::hear(TimePoint now, Line, const Welcome& welcome) {
  welcomed_ = true;
  patience_ = settings_.hello.settings.join_timeout;
  if (welcome.embedded) patience_ = std::min<Duration>(patience_, kEmbeddedPatience);
  heard_from_server(now);
}

void Attendee::hear(TimePoint, Line, const Refusal& refusal) {
  if (ended_ || parting_) return;  // We know the verdict, whatever this server thinks of us.
  part({std::nullopt, refusal.exit_code, refusal.message});
}

void Attendee::hear(TimePoint, Line, const Waiting& waiting) {
  if (waiting.round) held_.highest = std::max(held_.highest, *waiting.round);
  if (waiting_ == waiting.text) return;
  waiting_ = waiting.text;
  say(waiting.text);
}

void Attendee::hear(TimePoint, Line, const Dismissal&) {
  if (ended_) {
    dismissed_ = true;
  } else if (leaving_) {
    parting_ = leave_by_signal();
  } else {
    parting_ = Leave{std::nullopt, kRequeue, "this node was drained"};
  }
}

/// An order that was under way for too long is none any more: another may have been given since.
void Attendee::hear(TimePoint now, Line, const Directive& directive) {
  // Of another Hello, or of another incarnation.
  if (directive.ping < voice_hello_ || directive.ping >= next_ping_) return;
  // What is not remembered was sent before all that is.
  const auto quoted_at = sent_at(directive.ping).value_or(now - kPingsRemembered * lease_);
  if (directive.right && now >= quoted_at + *directive.right) return;
  if (const auto* prepare = std::get_if<Prepare>(&directive.order)) {
    auto counted = *prepare;
    counted.left = std::max<Duration>(counted.left - (now - quoted_at), Duration::zero());
    take(now, counted);
    return;
  }
  std::visit([this, now](const auto& order) { take(now, order); }, directive.order);
}

void Attendee::take(TimePoint now, const Assignment& assignment) {
  if (ended_ || parting_ || held_.stuck || holds() || assignment.round <= held_.highest) return;
  if (!lease_lives(now)) {
    dial();  // It is sent again to a Hello that does not hold it, and then the lease may live.
    return;
  }
  Held held;
  held.round = held.highest = assignment.round;
  held.nodes = assignment.nodes;
  held.node_rank = assignment.node_rank;
  held.attempts = assignment.attempt + 1;
  held.restarts = assignment.restarts;
  held.best_step = assignment.best_step;
  held.fruitless = assignment.fruitless;
  held.kept = held_.kept;
  stops_unheard_ = false;
  held.excluded = assignment.excluded;
  held_ = std::move(held);
  blameless_ = false;
  said_.clear();
  actions_.emplace_back(Deliver{assignment});
}

void Attendee::take(TimePoint, const Stop& stop) {
  held_.highest = std::max(held_.highest, stop.round);
  if (held_.round == stop.round) {
    held_.gone = stop.gone;
    blameless_ = stop.blameless;
    held_.excused = held_.excused || stop.blameless;
  }
  // Over already: the server may not have heard that.
  const auto end = std::find_if(said_.begin(), said_.end(), [&stop](const Report& report) {
    return ends_a_round(report) && round_of(report) == stop.round;
  });
  if (end != said_.end()) {
    transmit(*end);
  } else {
    actions_.emplace_back(Deliver{stop});
  }
}

void Attendee::take(TimePoint now, const Verdict& verdict) {
  if (!ended_) {
    ended_ = Ended{verdict, now};
    dismissed_ = dismissed_ || parting_;  // It leaves anyway, and now knows why.
    held_.verdict = verdict;
    if (holds()) fence("the job has ended");
  }
  transmit(Report(VerdictSeen{}));
}

void Attendee::take(TimePoint, const Prepare& prepare) {
  if (holds() != prepare.round) return;
  held_.excused = true;
  actions_.emplace_back(Deliver{prepare});
}

void Attendee::take(TimePoint, const Keep& keep) { held_.kept = keep; }

void Attendee::take(TimePoint, const MasterUp& up) {
  if (holds() == up.round) actions_.emplace_back(Deliver{up});
}

void Attendee::on(TimePoint now, const Reported& reported) {
  const auto& report = reported.report;
  if (std::holds_alternative<Hello>(report) || std::holds_alternative<VerdictSeen>(report)) return;
  if (const auto* leaving = std::get_if<Leaving>(&report)) {
    if (leaving_ && !holds()) {  // The user waits no longer.
      if (ended_) {
        dismissed_ = true;
      } else {
        part(leave_by_signal());
      }
    }
    leaving_ = leaving_.value_or(*leaving);
  } else if (const auto* notice = std::get_if<Notice>(&report)) {
    noticed_ = Noticed{*notice, now};
  } else {
    remember(report);
  }
  transmit(report);
  if (ends_a_round(report) && round_of(report) == held_.round) round_ended(now);
}

/// Keeps what is to be said again after each Hello: in what it holds, or else as it was reported.
void Attendee::remember(const Report& report) {
  const bool is_of_held = round_of(report) == held_.round;
  if (const auto* failed = std::get_if<Failed>(&report)) {
    const bool counts = !(held_.stopped && blameless_);
    if (is_of_held && counts) held_.failures.push_back(failed->failure);
  } else if (std::holds_alternative<Acknowledged>(report)) {
    if (is_of_held) held_.acknowledged = true;
  } else if (std::holds_alternative<Started>(report)) {
    if (is_of_held) held_.started = true;
  } else if (std::holds_alternative<Succeeded>(report)) {
    if (is_of_held) held_.succeeded = true;
  } else if (std::holds_alternative<Stopped>(report)) {
    if (is_of_held) held_.stopped = true;
  } else {
    // Of each kind the newest says all.
    std::erase_if(said_, [&](const Report& earlier) { return earlier.index() == report.index(); });
    said_.push_back(report);
  }
  if (std::holds_alternative<Stuck>(report)) held_.stuck = true;
  if (const auto* empty = std::get_if<Empty>(&report)) {
    settings_.hello.store = empty->next_store;
    if (is_of_held) held_.victims = empty->victims;
  }
}

void Attendee::round_ended(TimePoint now) {
  held_.empty = true;
  if (!std::exchange(fenced_, false)) return;
  renew(now);
  // To a server that has given our ranks away we are somebody new.
  if (!ended_ && !parting_) dial();
}

/// Leaves for good, as soon as nothing is held.
void Attendee::part(Leave leave) {
  if (parting_) return;
  parting_ = std::move(leave);
  if (holds()) fence(parting_->message);
}

Attendee::Leave Attendee::leave_by_signal() const {
  return {std::nullopt, leaving_->preempted ? kRequeue : kSignalBase + leaving_->signal,
          leaving_->preempted ? "this node is taken away"
                              : "the launcher got " + signal_name(leaving_->signal)};
}

/// When time alone may end it; nullopt: never, as things are.
std::optional<TimePoint> Attendee::leaves_at() const {
  const auto& settings = settings_.hello.settings;
  if (parting_) return std::nullopt;  // The tree's end is what it waits for.
  if (ended_) {
    if (holds()) return std::nullopt;
    return ended_->at + kVerdictPatience +
           (verdict_patience_over_ ? with_margin(lease_) : Duration::zero());
  }
  if (leaving_ && !holds() && !welcomed_) return started_;
  if (leaving_ && !holds()) return (answered_ ? answered_->at : heard_) + lease_ / 2;
  if (!welcomed_) return started_ + settings.join_timeout;
  return heard_ + with_margin(lease_) + patience_;
}

void Attendee::leave_when_due(TimePoint now) {
  if (!parting_ && !ended_) part_for_lack_of_a_server(now);
  if (holds()) return;
  if (ended_) {
    verdict_patience_over_ = now >= ended_->at + kVerdictPatience;
    // Whether the server is there is what it answers from now on.
    if (verdict_patience_over_ && voice_ && !last_ping_) {
      last_ping_ = next_ping_;
      ping(now);
    }
    const bool answers = last_ping_ && answered_ && answered_->number >= *last_ping_;
    // A verdict of this node alone nobody else needs to hear.
    const bool enough = verdict_patience_over_ && (answers || ended_->verdict.alone);
    if (dismissed_ || enough || now >= ended_->at + kVerdictPatience + with_margin(lease_))
      leave({ended_->verdict, ended_->verdict.exit_code, ended_->verdict.summary});
  } else if (parting_) {
    leave(*parting_);
  }
}

void Attendee::part_for_lack_of_a_server(TimePoint now) {
  const auto due = leaves_at();
  if (!due || now < *due) return;
  if (leaving_ && !holds()) {
    part(leave_by_signal());
    return;
  }
  const auto after = seconds_text(now - (welcomed_ ? heard_ : started_));
  std::string text =
      welcomed_
          ? "the rendezvous server at " + settings_.server + " has not been heard of for " + after
          : "no rendezvous server answered at " + settings_.server + " within " + after;
  if (!trouble_.empty()) text += ": " + trouble_;
  if (!waiting_.empty()) text += "; before that, " + waiting_;
  part({std::nullopt, kRequeue, std::move(text)});
}

void Attendee::leave(Leave leave) {
  over_ = true;
  hang_up(dialled_);
  hang_up(former_);
  hang_up(voice_);
  actions_.emplace_back(std::move(leave));
}

/// splitmix64.
std::uint64_t Attendee::random() {
  random_state_ += 0x9E3779B97F4A7C15U;
  auto mixed = random_state_;
  mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
  return mixed ^ (mixed >> 31U);
}

}  // namespace muster::agent

#include "base/text.hpp"
#include "rendezvous/core/job.hpp"
#include "rendezvous/core/settings.hpp"
#include "rendezvous/core/verdict.hpp"

#include <algorithm>
#include <utility>

// What agents, operators and the log are told.
namespace muster::rendezvous {
namespace {

constexpr std::size_t kNamesListed = 8;

std::string seconds_until(TimePoint now, TimePoint when) {
  const auto left = std::max(when - now, Duration::zero());
  return std::to_string(std::chrono::ceil<std::chrono::seconds>(left).count()) + " s";
}

/// Of a node's workers that tell how far they are.
std::optional<NodeProgress> progress_of(TimePoint now, const Round::Place& place) {
  if (place.progress.empty()) return std::nullopt;
  const auto [slowest, fastest] = std::minmax_element(
      place.progress.begin(), place.progress.end(),
      [](const WorkerProgress& a, const WorkerProgress& b) { return a.step < b.step; });
  NodeProgress progress{
      .slowest = slowest->step, .fastest = fastest->step, .phase = slowest->phase, .quiet = {}};
  for (const auto& worker : place.progress)
    progress.quiet = std::max(progress.quiet, worker.quiet + (now - place.progress_at));
  return progress;
}

}  // namespace

void Job::send(const Member& member, ServerMessage message) {
  if (member.link) actions_.emplace_back(action::Send{*member.link, std::move(message)});
}

void Job::order(const Member& member, Order order) {
  if (!member.link) return;  // Its next Hello is told what stands then.
  Directive directive;
  directive.ping = member.ping;
  directive.order = std::move(order);
  actions_.emplace_back(action::Send{*member.link, std::move(directive)});
}

void Job::note(action::Note::Level level, std::string text) {
  actions_.emplace_back(action::Note{level, id_, std::move(text)});
}
void Job::note(std::string text) { note(action::Note::Level::Info, std::move(text)); }

/// Who is there or missing has changed: all are to be told, soon where they are many.
void Job::changed(TimePoint now) {
  if (verdict_ || tell_at_) return;
  tell_at_ = roster_.size() <= kFewMembers ? now : std::max(now, told_at_ + kTellInterval);
}

void Job::tell_all(TimePoint now) {
  tell_at_.reset();
  told_at_ = now;
  if (verdict_) return;
  for (auto& [incarnation, member] : roster_.members()) tell(now, member);
}

/// Only what has changed: a time that runs on has not.
void Job::tell(TimePoint now, Member& member) {
  if (!member.link || member.released || member.holds) return;
  auto text = waiting_text(now, member);
  if (text.empty() || text == member.told) return;
  member.told = text;
  if (std::holds_alternative<Gathering>(phase_) && Roster::is_candidate(member))
    text += countdown(now);
  std::optional<RoundId> running;
  if (round_ && round_->find(member.hello.incarnation) == nullptr) running = round_->id();
  send(member, Waiting{std::move(text), running});
}

std::string Job::waiting_text(TimePoint now, const Member& member) const {
  if (member.departure && member.hello.hosts_server)
    return "this node leaves when the job has ended: others need the server in its process";
  if (member.departure) return "this node leaves: " + member.departure->reason;
  if (member.stuck) return "this node is excluded: processes of it could not be killed";
  if (member.contends && member.hello.node_rank) {
    const auto holder = claims_.holder(*member.hello.node_rank);
    const auto found = holder ? roster_.members().find(*holder) : roster_.members().end();
    if (found != roster_.members().end())
      return "node rank " + std::to_string(member.hello.node_rank->value) + " is that of node " +
             found->second.hello.name + " (" + address_of(found->second) +
             ") still: waiting for its end";
  }
  if (const auto* sentence = offenders_.sentence(now, member.hello.machine))
    return "this node is passed over for a while: " + sentence->reason;
  if (!round_) return gathering_text(now);
  const auto number = "round " + std::to_string(round_->id().number);
  if (round_->stop()) return number + " is being stopped: " + round_->stop()->reason;
  const auto present = count_of(round_->places().size(), "node");
  if (const auto* place = round_->find(member.hello.incarnation); place && place->succeeded)
    return "this node's workers have succeeded: waiting for those of the other nodes";
  if (round_->places().size() >= sizes_.largest())
    return "a spare: " + number + " runs with " + present +
           ", as many as the job may have; this one is taken in when one of them is lost";
  if (settings_.scale_up == ScaleUp::Never)
    return "a spare: " + number + " runs with " + present +
           "; by --scale-up never this one is taken " + "in at the next restart only";
  return number + " runs with " + present + "; " + scale_up_text();
}

std::string Job::scale_up_text() const {
  if (settings_.scale_up == ScaleUp::Now) return "this one is taken in by the next scale-up";
  if (round_->has_progress())
    return "by --scale-up checkpoint this one is taken in when a worker has saved";
  return "by --scale-up checkpoint this one is taken in when a worker has saved, but no worker "
         "tells "
         "when it does (none uses its beacon)";
}

/// "h0, h1, h2 ..."
std::string Job::there_text() const {
  std::string names;
  std::size_t listed = 0;
  for (const auto& [incarnation, member] : roster_.members()) {
    if (!Roster::is_candidate(member) || !member.there) continue;
    if (listed == kNamesListed) return names + " ...";
    names += (listed++ == 0 ? "" : ", ") + member.hello.name;
  }
  return names;
}

/// Whether recovery is what a round waits for: not while too few for any round are there and
/// nothing hints at an older one.
bool Job::waits_for_older_nodes(TimePoint now) const {
  if (!in_recovery(now) || recovery_allows(now)) return false;
  return !common_.first_here || recovery_->any_told() || sizes_.legal(presence().there);
}

std::string Job::gathering_text(TimePoint now) const {
  if (waits_for_older_nodes(now))
    return "the server has just started: it waits for nodes that may still run a round of the job";
  if (roster_.counts().holders > 0) return "waiting for what is left of an older round";
  const auto there = presence().there;
  auto text = "(" + std::to_string(there) + " of " + range_text(sizes_) + " there";
  if (there > 0) text += ": " + there_text();
  text += ")";
  if (!sizes_.legal(there))
    return "waiting for " + count_of(sizes_.smallest() - there, "more node") + " " + text;
  return "enough nodes are there, more may come " + text;
}

/// When the waiting ends by itself.
std::string Job::countdown(TimePoint now) const {
  const auto& gathering = std::get<Gathering>(phase_);
  if (waits_for_older_nodes(now)) return "; at most " + seconds_until(now, common_.recovery_ends);
  if (forming_deadline_)
    return "; " + seconds_until(now, *forming_deadline_) + " until the round forms";
  if (sizes_.legal(presence().there)) return {};
  return "; " + seconds_until(now, join_deadline(gathering)) + " until the join times out";
}

std::string Job::phase_text(TimePoint now) const {
  if (const auto* gathering = std::get_if<Gathering>(&phase_)) {
    if (in_recovery(now)) return "recovering";
    return gathering->forming.in_last_call() ? "last call" : "gathering";
  }
  if (std::holds_alternative<Running>(phase_)) return "running";
  if (std::holds_alternative<Draining>(phase_)) return "draining";
  if (std::holds_alternative<Stopping>(phase_)) return "stopping";
  if (!verdict_) return "closed";
  return verdict_->exit_code == 0 ? "succeeded" : "failed";
}

std::string Job::state_of(TimePoint now, const Member& member) const {
  const auto* place = round_ ? round_->find(member.hello.incarnation) : nullptr;
  if (!member.there) return "silent";
  if (member.departure) return "leaving";
  if (place != nullptr && place->succeeded) return "succeeded";
  if (member.holds) return round_ && !round_->stop() && place != nullptr ? "running" : "stopping";
  if (member.stuck || member.contends || offenders_.sentence(now, member.hello.machine) != nullptr)
    return "excluded";
  return round_ && !round_->stop() ? "spare" : "joining";
}

JobView Job::view(TimePoint now) const {
  JobView view;
  view.id = id_;
  view.phase = phase_text(now);
  view.settings = settings_;
  view.settings.min_nodes = sizes_.min;
  view.settings.max_nodes = sizes_.max;
  view.restarts = restarts_;
  view.attempt = attempts_ > 0 ? attempts_ - 1 : 0;
  view.verdict = verdict_;
  if (verdict_) view.reason = verdict_->summary;
  if (std::holds_alternative<Gathering>(phase_)) view.reason = gathering_text(now) + countdown(now);
  if (round_) {
    view.round = round_->id();
    view.world_size = round_->workers();
    if (round_->has_progress()) view.step = round_->highest_step();
    if (round_->stop()) view.reason = round_->stop()->reason;
  }
  for (const auto& [incarnation, member] : roster_.members()) {
    NodeView node;
    node.name = member.hello.name;
    node.machine = member.hello.machine;
    node.address = member.peer;
    node.incarnation = incarnation;
    node.state = state_of(now, member);
    if (member.departure) node.reason = member.departure->reason;
    if (!member.holds && !member.departure && !verdict_) node.reason = waiting_text(now, member);
    const auto* place = round_ ? round_->find(incarnation) : nullptr;
    if (place != nullptr) node.node_rank = place->assignment.node_rank;
    node.slots = member.hello.slots;
    if (place != nullptr) node.progress = progress_of(now, *place);
    if (settings_.lease > Duration::zero()) node.silent_for = now - member.heard;
    view.nodes.push_back(std::move(node));
  }
  return view;
}

}  // namespace muster::rendezvous

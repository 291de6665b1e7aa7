#include "rendezvous/core/rendezvous.hpp"

#include "base/text.hpp"
#include "rendezvous/core/settings.hpp"
#include "rendezvous/core/tags.hpp"
#include "rendezvous/core/verdict.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace muster::rendezvous {

Rendezvous::Rendezvous(Settings settings)
    : settings_(std::move(settings)), common_(settings_.epoch_bits) {
  common_.recovery_ends = settings_.bound_at + settings_.max_lease + settings_.max_lease / 4;
  common_.first_here = settings_.first_here;
  common_.seed = settings_.seed;
  common_.version = settings_.version;
  common_.embedded = settings_.only_job.has_value();
  for (auto& kept : std::exchange(settings_.kept, {})) {
    if (kept.ended.last_round) common_.epochs.hear(*kept.ended.last_round);
    archive_.keep(settings_.bound_at - kept.age, std::move(kept.ended));
  }
}

Rendezvous::~Rendezvous() = default;

std::vector<Rendezvous::Action> Rendezvous::step(TimePoint now, const Event& event) {
  std::visit([&](const auto& what) { on(now, what); }, event);
  for (const auto& action : actions_) {
    const auto* close = std::get_if<Close>(&action);
    if (close == nullptr) continue;
    links_.erase(close->link);
    waiting_.erase(close->link);
  }
  return std::exchange(actions_, {});
}

std::optional<TimePoint> Rendezvous::next_deadline() const {
  const auto jobs = deadlines_.earliest();
  const auto archive = archive_.next_deadline();
  if (!jobs || !archive) return jobs ? jobs : archive;
  return std::min(*jobs, *archive);
}

std::vector<JobView> Rendezvous::jobs(TimePoint now) const {
  std::vector<JobView> views;
  for (const auto& [id, job] : jobs_) views.push_back(job.view(now));
  for (auto& view : archive_.views()) {
    if (!jobs_.contains(view.id)) views.push_back(std::move(view));
  }
  std::sort(views.begin(), views.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return views;
}

std::optional<JobView> Rendezvous::job(TimePoint now, const std::string& id) const {
  if (const auto found = jobs_.find(id); found != jobs_.end()) return found->second.view(now);
  if (const auto* view = archive_.view(id)) return *view;
  return std::nullopt;
}

void Rendezvous::on(TimePoint now, const Greeted& greeted) {
  const auto& hello = greeted.hello;
  if (auto refused = refusal(hello)) {
    refuse(greeted.link, hello, std::move(*refused));
    return;
  }
  // A Hello of one that waits replaces the one before.
  std::erase_if(waiting_, [&](const auto& entry) {
    const auto& other = entry.second.hello;
    const bool same = other.incarnation == hello.incarnation && other.job == hello.job;
    if (same) actions_.emplace_back(Close{entry.first});
    return same;
  });
  admit(now, greeted);
}

/// What no job of this server could take.
std::optional<Refusal> Rendezvous::refusal(const Hello& hello) const {
  const auto too_long = [&](const char* what, const std::string& text) -> std::optional<Refusal> {
    if (text.size() <= settings_.limits.name) return std::nullopt;
    return Refusal{std::string(what) + " of node " + hello.name.substr(0, settings_.limits.name) +
                       " has " + std::to_string(text.size()) + " bytes: at most " +
                       std::to_string(settings_.limits.name) + " are taken",
                   kUsage};
  };
  for (const auto& [what, text] : {std::pair{"the job id (--rdzv-id)", &hello.job},
                                   {"the launch tag", &hello.launch_tag},
                                   {"the machine key", &hello.machine},
                                   {"the name", &hello.name},
                                   {"the incarnation", &hello.incarnation.value},
                                   {"the role", &hello.role},
                                   {"the topology label", &hello.topology}}) {
    if (auto refused = too_long(what, *text)) return refused;
  }
  const auto at_node = called(hello) + ": ";
  if (hello.slots == 0 || hello.slots > settings_.limits.slots)
    return Refusal{at_node + "--nproc-per-node " + std::to_string(hello.slots) + ": from 1 to " +
                       std::to_string(settings_.limits.slots) + " workers are taken",
                   kUsage};
  if (const auto wrong = what_is_wrong(hello.settings, settings_.max_lease))
    return Refusal{at_node + *wrong, kUsage};
  if (hello.node_rank && hello.node_rank->value >= hello.settings.max_nodes)
    return Refusal{at_node + "--node-rank " + std::to_string(hello.node_rank->value) +
                       " does not exist among at most " +
                       count_of(hello.settings.max_nodes, "node") + " (--nnodes)",
                   kUsage};
  return std::nullopt;
}

/// Finds the job that the node belongs to, running, ended or to begin.
void Rendezvous::admit(TimePoint now, const Greeted& greeted) {
  const auto& hello = greeted.hello;
  const auto found = jobs_.find(hello.job);
  const bool known = found != jobs_.end() && found->second.knows(hello.incarnation);
  if (!known) {
    if (const auto* verdict = archive_.find(hello)) {
      tell_late(greeted.link, hello, *verdict);
      return;
    }
  }
  if (found == jobs_.end()) {
    begin(now, greeted);
    return;
  }
  auto& job = found->second;
  const auto& tag = job.launch_tag();
  if (known) {
    greet(now, job, greeted);
  } else if (is_restart_of(hello.launch_tag, tag)) {
    wait(greeted, "waiting for the nodes of launch " + tag + " of the job to end, which launch " +
                      hello.launch_tag + " follows");
  } else if (job.verdict() && (tag.empty() || tag != hello.launch_tag) && !hello.held.round) {
    wait(greeted, "waiting for the nodes of the job that has just ended under this id to leave");
  } else if (auto refused = job.refusal(hello)) {
    refuse(greeted.link, hello, std::move(*refused));
  } else if (nodes_ >= settings_.limits.nodes) {
    refuse(
        greeted.link, hello,
        {called(hello) + ": this server takes at most " + count_of(settings_.limits.nodes, "node"),
         kOwnError});
  } else {
    greet(now, job, greeted);
  }
}

void Rendezvous::greet(TimePoint now, Job& job, const Greeted& greeted) {
  const auto before = job.members();
  links_.insert_or_assign(greeted.link, Speaker{greeted.hello.job, greeted.hello.incarnation});
  job.greet(now, {greeted.link, greeted.hello, greeted.peer, greeted.local});
  settle(now, greeted.hello.job, before);
}

void Rendezvous::begin(TimePoint now, const Greeted& greeted) {
  const auto& hello = greeted.hello;
  const auto& limits = settings_.limits;
  if (settings_.only_job && hello.job != *settings_.only_job) {
    refuse(greeted.link, hello,
           {called(hello) + " belongs to job \"" + hello.job +
                "\" (--rdzv-id), and this server is that of job \"" + *settings_.only_job +
                "\" alone: give them different endpoints, or start a musterd",
            kUsage});
    return;
  }
  if (jobs_.size() >= limits.jobs || nodes_ >= limits.nodes) {
    const auto limit =
        jobs_.size() >= limits.jobs ? count_of(limits.jobs, "job") : count_of(limits.nodes, "node");
    refuse(greeted.link, hello,
           {called(hello) + ": this server takes at most " + limit, kOwnError});
    return;
  }
  forget_departed(now);
  auto& job = jobs_.try_emplace(hello.job, hello.job, hello, now, common_).first->second;
  if (const auto departed = departed_.find(hello.job); departed != departed_.end()) {
    for (const auto& [incarnation, farewell] : departed->second)
      job.part(now, incarnation, farewell);
    departed_count_ -= departed->second.size();
    departed_.erase(departed);
  }
  greet(now, job, greeted);
}

void Rendezvous::wait(const Greeted& greeted, const std::string& why) {
  if (nodes_ + waiting_.size() >= settings_.limits.nodes) {
    refuse(greeted.link, greeted.hello,
           {called(greeted.hello) + ": this server takes at most " +
                count_of(settings_.limits.nodes, "node"),
            kOwnError});
    return;
  }
  actions_.emplace_back(Send{greeted.link, Welcome{settings_.version, common_.embedded}});
  actions_.emplace_back(Send{greeted.link, Pong{greeted.hello.ping, false}});
  actions_.emplace_back(Send{greeted.link, Waiting{why}});
  actions_.emplace_back(
      Note{Note::Level::Info, greeted.hello.job, called(greeted.hello) + " is " + why});
  waiting_.insert_or_assign(greeted.link, greeted);
}

/// One that waits for the end of another job holds nothing: its lease is renewed, and it may leave.
void Rendezvous::hear_waiting(LinkId link, const AgentMessage& message) {
  const auto found = waiting_.find(link);
  auto& hello = found->second.hello;
  if (const auto* ping = std::get_if<Ping>(&message)) {
    hello.ping = std::max(hello.ping, ping->number);
    actions_.emplace_back(Send{link, Pong{ping->number, false}});
    return;
  }
  const auto* leaving = std::get_if<Leaving>(&std::get<Report>(message));
  if (leaving == nullptr) return;
  Verdict verdict;
  verdict.alone = true;
  verdict.exit_code = leaving->preempted ? kRequeue : kSignalBase + leaving->signal;
  verdict.summary = "the launcher got " + signal_name(leaving->signal);
  verdict.attempts = 0;
  actions_.emplace_back(Send{link, Directive{hello.ping, {}, std::move(verdict)}});
  actions_.emplace_back(Send{link, Dismissal{}});
  waiting_.erase(found);
}

void Rendezvous::tell_late(LinkId link, const Hello& hello, const Verdict& verdict) {
  actions_.emplace_back(Send{link, Welcome{settings_.version, common_.embedded}});
  // What it may hold of the job was given away long ago.
  const bool holds = hello.held.round && !hello.held.empty;
  actions_.emplace_back(Send{link, Pong{hello.ping, holds}});
  Directive directive;
  directive.ping = hello.ping;
  directive.order = verdict;
  actions_.emplace_back(Send{link, std::move(directive)});
  actions_.emplace_back(Send{link, Dismissal{}});
  actions_.emplace_back(Note{Note::Level::Info, hello.job,
                             called(hello) + " came after the job's end, and is told its verdict"});
}

void Rendezvous::refuse(LinkId link, const Hello& hello, Refusal refusal) {
  actions_.emplace_back(Note{Note::Level::Warn, hello.job.substr(0, settings_.limits.name),
                             "refused: " + refusal.message});
  actions_.emplace_back(Send{link, std::move(refusal)});
  actions_.emplace_back(Close{link});
}

void Rendezvous::on(TimePoint now, const Heard& heard) {
  if (waiting_.contains(heard.link)) {
    hear_waiting(heard.link, heard.message);
    return;
  }
  const auto speaker = links_.find(heard.link);
  if (speaker == links_.end()) return;
  const auto found = jobs_.find(speaker->second.job);
  if (found == jobs_.end()) return;
  const auto before = found->second.members();
  found->second.hear(now, heard.link, speaker->second.incarnation, heard.message);
  settle(now, found->first, before);
}

void Rendezvous::on(TimePoint now, const Lost& lost) {
  waiting_.erase(lost.link);
  const auto speaker = links_.extract(lost.link);
  if (speaker.empty()) return;
  const auto found = jobs_.find(speaker.mapped().job);
  if (found == jobs_.end()) return;
  const auto before = found->second.members();
  found->second.hang_up(now, lost.link, speaker.mapped().incarnation);
  settle(now, found->first, before);
}

void Rendezvous::on(TimePoint now, const Departed& departed) {
  actions_.emplace_back(Acknowledge{departed.link});
  std::erase_if(waiting_, [&](const auto& entry) {
    const auto& hello = entry.second.hello;
    return hello.incarnation == departed.incarnation && hello.job == departed.farewell.job;
  });
  const auto found = jobs_.find(departed.farewell.job);
  if (found != jobs_.end()) {
    const auto before = found->second.members();
    found->second.part(now, departed.incarnation, departed.farewell);
    settle(now, found->first, before);
  } else if (now < common_.recovery_ends && departed_count_ < settings_.limits.nodes) {
    auto farewell = departed.farewell;
    farewell.reason.resize(std::min(farewell.reason.size(), settings_.limits.name));
    auto& of_job = departed_[farewell.job];
    departed_count_ +=
        of_job.insert_or_assign(departed.incarnation, std::move(farewell)).second ? 1 : 0;
  }
}

void Rendezvous::on(TimePoint now, const Commanded& commanded) {
  const auto found = jobs_.find(commanded.job);
  if (found == jobs_.end()) {
    const bool ended = archive_.view(commanded.job) != nullptr;
    if (ended && std::holds_alternative<StopJob>(commanded.command)) {
      actions_.emplace_back(Answer{commanded.id, std::string("the job has ended already")});
    } else {
      const auto named = "job '" + commanded.job + "'";
      actions_.emplace_back(Answer{
          commanded.id,
          fail(Errc::NotFound, ended ? named + " has ended" : "no " + named + " is known here")});
    }
    return;
  }
  const auto before = found->second.members();
  found->second.command(now, commanded.id, commanded.command);
  settle(now, found->first, before);
}

void Rendezvous::on(TimePoint now, const TurnedAway& turned_away) {
  const auto found = jobs_.find(turned_away.job);
  if (found == jobs_.end()) return;
  const auto before = found->second.members();
  found->second.turned_away(turned_away.address);
  settle(now, found->first, before);
}

void Rendezvous::on(TimePoint now, const Ending& ending) {
  std::vector<std::string> ids;
  for (const auto& [id, job] : jobs_) ids.push_back(id);
  for (const auto& id : ids) {
    auto& job = jobs_.at(id);
    const auto before = job.members();
    job.abandon(now, ending.reason);
    settle(now, id, before);
  }
}

void Rendezvous::on(TimePoint now, const Ticked&) {
  for (const auto& id : deadlines_.take_over(now)) {
    auto& job = jobs_.at(id);
    const auto before = job.members();
    job.tick(now);
    settle(now, id, before);
  }
  archive_.expire(now);
  forget_departed(now);
}

/// Once recovery is over nobody comes any more who was with them.
void Rendezvous::forget_departed(TimePoint now) {
  if (now < common_.recovery_ends) return;
  departed_.clear();
  departed_count_ = 0;
}

/// After a job had its turn: what it wants done, when it is to be woken, whether it is over.
void Rendezvous::settle(TimePoint now, const std::string& id, std::size_t members_before) {
  auto& job = jobs_.at(id);
  nodes_ += job.members() - members_before;
  for (auto& action : job.take_actions()) actions_.push_back(std::move(action));
  const auto follows = [&] {
    return std::any_of(waiting_.begin(), waiting_.end(),
                       [&](const auto& entry) { return entry.second.hello.job == id; });
  };
  const bool over = job.is_over() || (job.members() == 0 && !waiting_.empty() && follows());
  if (!over) {
    const auto deadline = job.next_deadline();
    if (deadline) {
      deadlines_.set(id, *deadline);
    } else {
      deadlines_.clear(id);
    }
    return;
  }
  // What follows under its id has rounds above its own.
  if (const auto last = job.last_round()) common_.epochs.hear(*last);
  if (job.verdict()) {
    Archive::Ended ended{job.view(now), job.launch_tag(), job.attended(), job.last_round()};
    ended.view.nodes.clear();
    archive_.keep(now, std::move(ended));
  }
  nodes_ -= job.members();
  deadlines_.clear(id);
  const auto name = id;  // `id` may live in what goes now.
  jobs_.erase(name);
  std::vector<Greeted> followers;
  for (auto entry = waiting_.begin(); entry != waiting_.end();) {
    if (entry->second.hello.job != name) {
      ++entry;
      continue;
    }
    followers.push_back(std::move(entry->second));
    entry = waiting_.erase(entry);
  }
  for (const auto& follower : followers) admit(now, follower);
}

}  // namespace muster::rendezvous

#include "tests/rendezvous/core/job_harness.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <catch2/catch.hpp>

namespace muster::rendezvous::test {

JobSettings nodes(std::uint32_t min, std::uint32_t max, std::uint32_t restarts) {
  JobSettings settings;
  settings.min_nodes = min;
  settings.max_nodes = max;
  settings.max_restarts = restarts;
  return settings;
}

Rendezvous::Settings short_recovery() {
  Rendezvous::Settings settings;
  settings.max_lease = std::chrono::seconds(10);
  return settings;
}

Sim& running(Sim& sim, const std::vector<std::string>& names) {
  for (const auto& name : names) sim.join(name);
  sim.advance(std::chrono::seconds(61));
  return sim;
}

void back(Sim& sim, const std::string& name) {
  sim.greet(name);
  sim.ping(name);
}

Sim::Sim(JobSettings given, Rendezvous::Settings server)
    : settings(std::move(given)), server_(std::move(server)) {
  // Long ago, unless the test is about recovery: the server knows that no round runs.
  if (server_.bound_at == TimePoint{}) server_.bound_at = now_ - std::chrono::hours(1);
  server_.epoch_bits = 7;
  rendezvous_.emplace(server_);
}

Agent& Sim::add(const std::string& name) {
  auto& agent = agents_[name];
  agent = Agent{};
  agent.hello.job = job_;
  agent.hello.launch_tag = tag;
  agent.hello.name = name;
  agent.hello.machine = "machine-" + name;
  agent.hello.incarnation = {"incarnation-" + name + "-" + std::to_string(next_link_)};
  agent.hello.settings = settings;
  const auto number = std::to_string(agents_.size());
  agent.peer = "10.0.0." + number;
  agent.hello.addresses = {agent.peer};
  agent.hello.store = {agent.peer, static_cast<std::uint16_t>(1000 + agents_.size())};
  return agent;
}

Agent& Sim::greet(const std::string& name) {
  auto& agent = agents_.at(name);
  agent.link = LinkId{next_link_++};
  links_[*agent.link] = name;
  agent.hello.ping = ++agent.ping;
  agent.pinged = now_;
  agent.gone = false;
  feed(Rendezvous::Greeted{*agent.link, agent.hello, agent.peer, agent.local});
  return agent;
}

void Sim::say(const std::string& name, Report report) {
  const auto& agent = agents_.at(name);
  if (agent.link) feed(Rendezvous::Heard{*agent.link, std::move(report)});
}

void Sim::ping(const std::string& name) {
  auto& agent = agents_.at(name);
  agent.pinged = now_;
  if (agent.link)
    feed(Rendezvous::Heard{*agent.link, Ping{++agent.ping, agent.memory_used, agent.memory_limit}});
}

void Sim::start(const std::string& name) {
  auto& agent = agents_.at(name);
  agent.hello.held.acknowledged = agent.hello.held.started = true;
  say(name, Acknowledged{agent.round()});
  say(name, Started{agent.round()});
}

void Sim::fail(const std::string& name, ExitStatus status, Cause cause, std::uint32_t local_rank) {
  auto& agent = agents_.at(name);
  WorkerFailure failure;
  failure.rank = {agent.assignment().rank_offset.value + local_rank};
  failure.local_rank = {local_rank};
  failure.node_rank = agent.assignment().node_rank;
  failure.status = status;
  failure.cause = cause;
  agent.hello.held.failures.push_back(failure);
  say(name, Failed{agent.round(), failure, agent.hello.slots});
}

void Sim::succeed(const std::string& name) {
  auto& agent = agents_.at(name);
  agent.hello.held.succeeded = agent.hello.held.empty = true;
  say(name, Succeeded{agent.round()});
  say(name, Empty{agent.round(), {}, agent.hello.store});
}

void Sim::empty(const std::string& name, std::uint16_t port) {
  auto& agent = agents_.at(name);
  agent.hello.held.stopped = agent.hello.held.empty = true;
  agent.hello.store.port = port;
  say(name, Stopped{agent.round()});
  say(name, Empty{agent.round(), {}, agent.hello.store});
}

void Sim::drop(const std::string& name) {
  auto& agent = agents_.at(name);
  const auto link = std::exchange(agent.link, std::nullopt);
  if (link) feed(Rendezvous::Lost{*link});
}

void Sim::farewell(const std::string& name, const std::string& reason) {
  auto& agent = agents_.at(name);
  agent.alive = false;
  agent.hello.held.empty = true;
  Farewell farewell{.job = job_, .secret = {}, .round = agent.hello.held.round, .reason = reason};
  feed(Rendezvous::Departed{LinkId{next_link_++}, farewell, agent.hello.incarnation});
}

Result<std::string> Sim::command(Command command) {
  const CommandId id{next_link_++};
  feed(Rendezvous::Commanded{id, job_, std::move(command)});
  for (const auto& action : all_) {
    const auto* answer = std::get_if<Rendezvous::Answer>(&action);
    if (answer != nullptr && answer->id == id) return answer->outcome;
  }
  FAIL("the command was not answered");
  return std::string();
}

void Sim::advance(Duration time) {
  const auto end = now_ + time;
  while (true) {
    auto next = rendezvous_->next_deadline();
    if (next && *next < now_) FAIL("a deadline in the past");
    std::string pinger;
    for (const auto& [name, agent] : agents_) {
      if (!agent.pings || !agent.alive || agent.hello.settings.lease == Duration::zero()) continue;
      const auto at = agent.pinged + agent.hello.settings.lease / 5;
      if (next && at >= *next) continue;
      next = std::max(at, now_);
      pinger = name;
    }
    if (!next || *next > end) break;
    now_ = *next;
    if (pinger.empty()) {
      feed(Rendezvous::Ticked{});
      const auto after = rendezvous_->next_deadline();
      if (after && *after <= now_) FAIL("a deadline that a tick does not move");
    } else {
      ping(pinger);
    }
  }
  now_ = end;
}

void Sim::restart_server(Duration after, bool first_here) {
  for (auto& [name, agent] : agents_) agent.link.reset();
  links_.clear();
  now_ += after;
  server_.bound_at = now_;
  server_.first_here = first_here;
  server_.epoch_bits += 1;
  rendezvous_.emplace(server_);
}

std::string Sim::state_of(const std::string& name) const {
  const auto all = view().nodes;
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& node) { return node.name == name; });
  return found == all.end() ? "unknown" : found->state;
}

bool Sim::noted(const std::string& part) const {
  return std::any_of(all_.begin(), all_.end(), [&](const auto& action) {
    const auto* note = std::get_if<Rendezvous::Note>(&action);
    return note != nullptr && note->text.find(part) != std::string::npos;
  });
}

void Sim::feed(const Rendezvous::Event& event) {
  pending_.push_back(event);
  if (feeding_) return;
  feeding_ = true;
  drain();
  feeding_ = false;
}

void Sim::drain() {
  while (!pending_.empty()) {
    const auto event = std::move(pending_.front());
    pending_.pop_front();
    for (auto& action : rendezvous_->step(now_, event)) {
      all_.push_back(action);
      if (const auto* send = std::get_if<Rendezvous::Send>(&action))
        deliver(send->link, send->message);
      if (const auto* close = std::get_if<Rendezvous::Close>(&action)) {
        const auto found = links_.find(close->link);
        if (found == links_.end()) continue;
        auto& agent = agents_.at(found->second);
        if (agent.link == close->link) agent.link.reset();
        links_.erase(found);
      }
    }
    check();
  }
}

void Sim::deliver(LinkId link, const ServerMessage& message) {
  const auto found = links_.find(link);
  if (found == links_.end()) return;
  auto& agent = agents_.at(found->second);
  if (agent.link != link || !agent.alive) return;
  if (const auto* pong = std::get_if<Pong>(&message)) {
    agent.newest_pong = std::max(agent.newest_pong, pong->number);
    agent.gone = pong->gone;
  } else if (const auto* refusal = std::get_if<Refusal>(&message)) {
    agent.refusal = *refusal;
    agent.pings = false;
  } else if (const auto* waiting = std::get_if<Waiting>(&message)) {
    agent.waits.push_back(waiting->text);
  } else if (std::holds_alternative<Dismissal>(message)) {
    agent.dismissed = true;
    agent.alive = false;
    const auto gone = std::exchange(agent.link, std::nullopt);
    feed(Rendezvous::Lost{*gone});
  } else if (const auto* directive = std::get_if<Directive>(&message)) {
    CHECK(directive->ping <= agent.ping);
    obey(agent, directive->order);
  }
}

void Sim::obey(Agent& agent, const Order& order) {
  const auto name = agent.hello.name;
  auto& held = agent.hello.held;
  if (const auto* assignment = std::get_if<Assignment>(&order)) {
    CHECK(assignment->round > held.highest);
    Held now_held;
    now_held.round = now_held.highest = assignment->round;
    now_held.nodes = assignment->nodes;
    now_held.node_rank = assignment->node_rank;
    now_held.attempts = assignment->attempt + 1;
    now_held.restarts = assignment->restarts;
    now_held.best_step = assignment->best_step;
    now_held.fruitless = assignment->fruitless;
    now_held.kept = held.kept;
    now_held.excluded = assignment->excluded;
    held = now_held;
    agent.assignments.push_back(*assignment);
    agent.master_up = false;
    if (!agent.slow) start(name);
  } else if (const auto* stop = std::get_if<Stop>(&order)) {
    held.highest = std::max(held.highest, stop->round);
    held.gone = stop->gone;
    agent.stops.push_back(*stop);
    if (agent.slow || held.round != stop->round) return;
    held.stopped = held.empty = true;
    say(name, Stopped{stop->round});
    say(name, Empty{stop->round, {}, agent.hello.store});
  } else if (const auto* verdict = std::get_if<Verdict>(&order)) {
    agent.verdict = *verdict;
    held.verdict = *verdict;
    if (!agent.slow) say(name, VerdictSeen{});
  } else if (const auto* prepare = std::get_if<Prepare>(&order)) {
    agent.prepares.push_back(*prepare);
  } else if (const auto* keep = std::get_if<Keep>(&order)) {
    held.kept = *keep;
  } else {
    agent.master_up = true;
  }
}

void Sim::check() const {
  std::map<Rank, std::string> holders;  // Of any round: they all must be empty before the next.
  std::set<RoundId> rounds;
  for (const auto& [name, agent] : agents_) {
    if (!agent.holds() || !agent.alive || !agent.pings || agent.hello.job != job_) continue;
    const auto& assignment = agent.assignment();
    rounds.insert(assignment.round);
    for (std::uint32_t worker = 0; worker < agent.hello.slots; ++worker) {
      const Rank rank{assignment.rank_offset.value + worker};
      INFO("rank " << rank.value << " on " << name);
      CHECK(rank.value < assignment.world_size);
      CHECK(holders.emplace(rank, name).second);
    }
  }
  CHECK(rounds.size() <= 1);
}

}  // namespace muster::rendezvous::test

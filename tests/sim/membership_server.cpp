#include "tests/sim/membership_world.hpp"

#include <algorithm>

// The rendezvous server's process: it may die, come back, and stall between its clock and its
// deeds.
namespace muster::sim {
using namespace std::chrono_literals;
namespace {

/// At one instant.
constexpr unsigned kMostTicks = 100;
/// Much less than a recovery with the longest lease; more than all delays on the way.
constexpr Duration kToldWithin = 1s;

}  // namespace

void World::bind_server() {
  if (server_.core != nullptr) return;
  const bool first = server_.instance == 0;
  ++server_.instance;
  ++outcome_.servers;
  const auto& clock = hosts_[server_.host].clock;
  Rendezvous::Settings settings;
  settings.max_lease = max_lease_;
  settings.first_here = first && chance_.one_in(2);
  if (embedded_) settings.only_job = "j";
  settings.bound_at = clock.read(now());
  settings.epoch_bits = static_cast<std::uint32_t>(chance_());
  settings.seed = chance_();
  if (planted(Planted::NoRecovery)) settings.bound_at -= 1000s;
  if (planted(Planted::RecoveryOfOneLease)) settings.bound_at -= max_lease_ / 4;
  if (planted(Planted::RecoveryFromProcessStart) && !first)
    settings.bound_at -= chance_.between(0s, max_lease_);  // It waited for the port.
  if (planted(Planted::BareEpochs)) settings.epoch_bits = 0;
  server_.core = std::make_unique<Rendezvous>(settings);
  server_.bound_at = now();
  server_.knows_verdict = false;
  server_.store_open = false;
  server_.known.clear();
  server_.farewells.clear();
  server_.failed_rounds.clear();
  server_.armed.reset();
  trace("server ", server_.instance, " is bound", settings.first_here ? ", the first here" : "");
  if (truth_.has_verdict()) verdict_may_be_lost();
  arm_server();
}

void World::crash_server() {
  if (server_.core == nullptr) return;
  trace("server ", server_.instance, " is killed");
  server_.core.reset();
  server_.inbox.clear();
  server_.todo.clear();
  server_.stall = {};
  for (std::size_t id = 0; id < links_.size(); ++id) {
    if (links_[id].server_open && links_[id].agent_open && hosts_[server_.host].up)
      close_from_server(id, "connection reset by peer");
    links_[id].server_open = false;
  }
  if (truth_.has_verdict()) verdict_may_be_lost();
}

void World::tell_server(Rendezvous::Event event) {
  server_.inbox.push_back(std::move(event));
  run_server();
}

void World::run_server() {
  if (server_.core == nullptr || server_.busy || server_.stall.on) return;
  server_.busy = true;
  while (server_.core != nullptr && !server_.stall.on) {
    if (!server_.todo.empty()) {
      if (server_.stall.next > 0ns) {
        stall_server(std::exchange(server_.stall.next, 0ns));
        break;
      }
      const auto action = std::move(server_.todo.front());
      server_.todo.pop_front();
      std::visit([this](const auto& what) { act(what); }, action);
    } else if (!server_.inbox.empty()) {
      const auto event = std::move(server_.inbox.front());
      server_.inbox.pop_front();
      step_server(event);
    } else {
      break;
    }
  }
  server_.busy = false;
  arm_server();
}

void World::step_server(const Rendezvous::Event& event) {
  if (const auto* greeted = std::get_if<Rendezvous::Greeted>(&event)) {
    server_.known.try_emplace(greeted->hello.incarnation, now());
    if (!server_.farewells.empty()) see_whether_survivors_are_told();
    if (greeted->hello.held.verdict && !greeted->hello.held.verdict->alone)
      server_.knows_verdict = true;
    trace("server hears Hello of n", links_[greeted->link.value].node, " on link ",
          greeted->link.value);
  }
  if (const auto* departed = std::get_if<Rendezvous::Departed>(&event))
    server_.farewells.insert(departed->incarnation);
  const auto now_here = hosts_[server_.host].clock.read(now());
  auto actions = server_.core->step(now_here, event);

  // Without a launch tag, nodes begin another job when one has ended, unless they were in a round
  // that this server knows of.
  const bool ends_now = std::any_of(actions.begin(), actions.end(), [](const auto& action) {
    return std::holds_alternative<Rendezvous::Ended>(action);
  });
  const auto is_of_another_job = [this, ends_now](std::size_t node) {
    return (truth_.has_verdict() || ends_now) && launch_tag_.empty() &&
           (!nodes_[node].served || server_.instance > 1);
  };
  std::vector<Truth::Place> places;
  for (const auto& action : actions) {
    const auto* send = std::get_if<Rendezvous::Send>(&action);
    const auto* directive = send == nullptr ? nullptr : std::get_if<Directive>(&send->message);
    if (directive == nullptr) continue;
    const auto node = links_[send->link.value].node;
    const auto* assignment = std::get_if<Assignment>(&directive->order);
    const auto* verdict = std::get_if<Verdict>(&directive->order);
    if (assignment != nullptr) places.push_back({node, nodes_[node].settings.workers, *assignment});
    const bool differs =
        assignment != nullptr || (verdict != nullptr && !truth_.agrees_with(*verdict));
    if (differs && is_of_another_job(node)) another_job_ = true;
    if (verdict != nullptr && !verdict->alone) {
      server_.knows_verdict = true;
      trace("verdict ", verdict->exit_code, " for n", node);
    }
  }
  if (another_job_) return;
  if (!places.empty()) truth_.assigned(server_.instance, places);
  for (auto& action : actions) server_.todo.push_back(std::move(action));

  if (!planted(Planted::FirstFailureIsTheCause)) return;
  if (const auto* heard = std::get_if<Rendezvous::Heard>(&event)) {
    const auto* report = std::get_if<Report>(&heard->message);
    const auto* failed = report == nullptr ? nullptr : std::get_if<Failed>(report);
    if (failed != nullptr) decide_at_the_first_failure(heard->link, *failed);
  }
}

/// Answers the Stop for all others at once, as if nothing more could come.
void World::decide_at_the_first_failure(LinkId link, const Failed& failed) {
  if (!server_.failed_rounds.insert(failed.round).second) return;
  for (std::size_t id = 0; id < links_.size(); ++id) {
    if (links_[id].server_open && links_[id].server == server_.instance &&
        !links_[id].greeted.value.empty() && LinkId{id} != link)
      server_.inbox.push_back(Rendezvous::Heard{LinkId{id}, Report(Stopped{failed.round})});
  }
}

void World::arm_server() {
  if (server_.core == nullptr || server_.stall.on) return;
  const auto deadline = server_.core->next_deadline();
  if (!deadline) return;
  const auto& clock = hosts_[server_.host].clock;
  const auto at = std::max(clock.when(*deadline), now());
  if (server_.armed && *server_.armed <= at) return;
  server_.armed = at;
  queue_.at(at, [this, at, instance = server_.instance] {
    if (instance != server_.instance || server_.armed != at) return;
    server_.armed.reset();
    if (server_.core == nullptr || server_.stall.on) return;
    const auto due = server_.core->next_deadline();
    if (due && *due <= hosts_[server_.host].clock.read(now())) {
      if (std::exchange(server_.ticked_at, now()) != now()) server_.ticks = 0;
      if (++server_.ticks > kMostTicks) {
        truth_.breaks("the server is woken for nothing, for ever");
        return;
      }
      tell_server(Rendezvous::Ticked{});
    } else {
      arm_server();
    }
  });
}

void World::stall_server(Duration time) {
  trace("server stalls for ", std::chrono::duration<double>(time).count(), " s");
  server_.stall.on = true;
  server_.stalled_until = now() + time;
  for (auto& node : nodes_) {  // One process is one thread.
    if (node.embeds && node.agent_lives && !node.stall.on) stall_node(node, time);
  }
  queue_.after(time, [this, instance = server_.instance] {
    if (instance != server_.instance || server_.core == nullptr) return;
    server_.stall.on = false;
    if (chance_.one_in(2)) server_.inbox.push_front(Rendezvous::Ticked{});
    run_server();
  });
}

void World::act(const Rendezvous::Send& send) {
  if (trace_ != nullptr) {
    const auto* directive = std::get_if<Directive>(&send.message);
    static constexpr const char* kOrders[] = {"Assignment", "Stop",     "Verdict",
                                              "Prepare",    "MasterUp", "Keep"};
    const auto node = links_[send.link.value].node;
    if (directive != nullptr) {
      trace("server -> n", node, ": ", kOrders[directive->order.index()]);
    } else if (const auto* refusal = std::get_if<Refusal>(&send.message)) {
      trace("server -> n", node, ": Refusal ", refusal->message);
    } else if (const auto* pong = std::get_if<Pong>(&send.message); pong != nullptr && pong->gone) {
      trace("server -> n", node, ": gone");
    } else if (std::holds_alternative<Dismissal>(send.message)) {
      trace("server -> n", node, ": Dismissal");
    }
  }
  send_to_agent(send.link.value, send.message);
  const auto* directive = std::get_if<Directive>(&send.message);
  if (quiet_ || directive == nullptr || !std::holds_alternative<Verdict>(directive->order)) return;
  if (!std::exchange(dies_of_the_verdict_, false)) return;
  if (embedded_) {
    queue_.after(chance_.between(0ms, 2ms), [this] {
      for (auto& node : nodes_) {
        if (node.embeds && node.agent_lives) kill_agent_alone(node);
      }
    });
    return;
  }
  queue_.after(chance_.between(0ms, 2ms), [this] { crash_server(); });
  queue_.after(chance_.between(10ms, settings_.lease / 2), [this] { bind_server(); });
}

void World::act(const Rendezvous::Acknowledge& acknowledge) {
  const auto node = farewell_of_.at(acknowledge.link.value);
  if (!is_cut(nodes_[node])) acknowledged_.insert(node);
  see_whether_survivors_are_told();
}

void World::act(const Rendezvous::Close& close) {
  if (close.link.value < links_.size()) close_from_server(close.link.value, "closed by the server");
}

void World::act(const Rendezvous::Answer& answer) {
  trace("server answers: ", answer.outcome ? *answer.outcome : answer.outcome.error().message);
}

void World::act(const Rendezvous::Note& note) { trace("server: ", note.text); }

void World::act(const Rendezvous::OpenStore&) { server_.store_open = true; }

void World::act(const Rendezvous::CloseStore&) { server_.store_open = false; }

void World::act(const Rendezvous::Ended& ended) {
  trace("server: ended with ", ended.verdict.exit_code);
  truth_.verdict_told(ended.verdict);
  if (!planted(Planted::IdFreeAtOnce)) return;
  Rendezvous::Settings settings;
  settings.max_lease = max_lease_;
  settings.first_here = true;
  settings.bound_at = hosts_[server_.host].clock.read(now()) - 1000s;
  settings.epoch_bits = static_cast<std::uint32_t>(chance_());
  server_.inbox.clear();
  server_.todo.clear();
  server_.core = std::make_unique<Rendezvous>(settings);
}

/// On a farewell the survivors are told soon, also by a server that started after it (protocol.md
/// 3).
void World::see_whether_survivors_are_told() {
  if (spiky_) return;
  queue_.after(kToldWithin, [this, instance = server_.instance] {
    if (server_.core != nullptr && server_.instance == instance &&
        server_.stalled_until + kToldWithin < now())
      look_whether_survivors_were_told();
  });
}

void World::look_whether_survivors_were_told() {
  for (const auto& departed : nodes_) {
    const auto round = departed.attendee.holds();
    if (!round || departed.agent_lives || !server_.farewells.contains(departed.incarnation) ||
        truth_.has_succeeded(*round, departed.number))
      continue;
    bool all_there = false;  // Nobody, until one is.
    bool told = false;
    for (const auto number : truth_.members(*round)) {
      const auto& survivor = nodes_[number];
      if (server_.farewells.contains(survivor.incarnation)) continue;
      const auto greeted = server_.known.find(survivor.incarnation);
      all_there = survivor.agent_lives && survivor.attendee.holds() == round &&
                  greeted != server_.known.end() && greeted->second + kToldWithin <= now() &&
                  survivor.troubled_until + kToldWithin < now();
      told = told || survivor.stopped == round;
      if (!all_there) break;
    }
    if (all_there && !told) truth_.breaks("the survivors of a farewell were not told of it");
  }
}

/// What the nodes hold, as a simpler rule would have it.
void World::plant_in_greeting(Hello& hello) const {
  if (!planted(Planted::FormsWhenReportedMembersAreBack) || !hello.held.round) return;
  hello.held.unbroken = true;
  hello.held.empty = false;
  hello.held.highest = *hello.held.round;
}

}  // namespace muster::sim

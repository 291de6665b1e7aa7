#include "tests/sim/membership_world.hpp"

#include <algorithm>
#include <csignal>

// What goes wrong, and when it stops going wrong.
namespace muster::sim {
using namespace std::chrono_literals;

void World::plan_faults() {
  const auto faults = chance_.pick(9);
  for (std::uint32_t fault = 0; fault < faults; ++fault)
    queue_.at(TimePoint{} + chance_.between(0s, quiet_at_.time_since_epoch()),
              [this] { do_fault(); });
  queue_.at(quiet_at_, [this] { quieten(); });
}

World::Node* World::some_node() {
  const auto first = chance_.pick(static_cast<std::uint32_t>(nodes_.size()));
  for (std::size_t offset = 0; offset < nodes_.size(); ++offset) {
    auto& node = nodes_[(first + offset) % nodes_.size()];
    if (node.agent_lives && node.keeper_lives && hosts_[node.host].up) return &node;
  }
  return nullptr;
}

World::Node* World::some_running_node() {
  for (int tries = 0; tries < 4; ++tries) {
    auto* node = some_node();
    if (node != nullptr && has_workers(*node)) return node;
  }
  return some_node();
}

void World::do_fault() {
  if (quiet_) return;
  ++outcome_.faults;
  const auto lease = settings_.lease;
  auto* node = some_running_node();
  switch (chance_.pick(18)) {
    case 0:
      if (node != nullptr && has_workers(*node)) {
        for (std::uint32_t index = 0; index < node->workers.size(); ++index) {
          if (!node->workers[index].runs) continue;
          fail_by_itself(*node, index);
          break;
        }
      }
      break;
    case 1:  // The agent alone.
      if (node != nullptr) kill_agent_alone(*node);
      break;
    case 2:  // The keeper alone: its agent sees it, unless it is stalled, which is a known limit.
      if (node == nullptr || node->stall.on || node->stall.next > 0ns) break;
      trace("n", node->number, ": the keeper is killed");
      node->crashed = true;
      node->keeper_lives = false;
      kill_agent(*node);
      queue_.after(chance_.between(0ms, 5ms),
                   [this, number = node->number] { undertake(number, now() + 10s); });
      break;
    case 3:  // Both in one instant: the workers get the parent-death signal, and nobody says so.
      if (node == nullptr) break;
      trace("n", node->number, ": keeper and agent are killed");
      node->crashed = true;
      kill_agent(*node);
      kill_tree(*node);
      finish(*node);
      come_back(node->host, chance_.between(0s, 2 * lease));
      break;
    case 4:
      if (node == nullptr) break;
      crash_host(*node);
      break;
    case 5:
    case 6:
      if (node != nullptr) cut(hosts_[node->host], chance_.between(10ms, 3 * lease));
      break;
    case 7: {  // Several at once: a switch.
      const auto time = chance_.between(10ms, 3 * lease);
      for (auto& host : hosts_) {
        const bool is_servers = &host == &hosts_[server_.host];
        if (chance_.one_in(2) && (embedded_ || !is_servers))
          cut(host, time + chance_.between(0s, lease / 2));
      }
      break;
    }
    case 8:
      if (node != nullptr && !node->links.empty()) {
        const auto link = node->links.back();
        if (link != 0 && link != kNoLink && links_[link].agent_open) {
          trace("a middlebox resets the connection of n", node->number);
          reset(link);
        }
      }
      break;
    case 9:
      if (node == nullptr || node->stall.on) break;
      node->stall.at_spawn = chance_.one_in(2);
      node->stall.next = chance_.between(1ms, 2 * lease);
      break;
    case 10:
      server_.stall.next = chance_.between(1ms, 2 * lease);
      break;
    case 11:
    case 12:
      if (embedded_) {
        for (auto& other : nodes_) {
          if (other.embeds && other.agent_lives) kill_agent_alone(other);
        }
        break;
      }
      crash_server();
      queue_.after(
          chance_.one_in(2) ? chance_.between(10ms, lease / 2) : chance_.between(10ms, 3 * lease),
          [this] { bind_server(); });
      break;
    case 16:  // The switch between them takes the server with it, which is back at once.
      if (embedded_) break;
      for (auto& host : hosts_) {
        if (&host != &hosts_[server_.host] && chance_.one_in(2))
          cut(host, chance_.between(lease, 3 * lease));
      }
      crash_server();
      queue_.after(chance_.between(1ms, 50ms), [this] { bind_server(); });
      break;
    case 13:
      if (!truth_.has_verdict() && nodes_.size() < 9) {
        const auto number = add_node(add_host());
        start_node(number);
      }
      break;
    case 14:
      command();
      break;
    case 15:
      if (node == nullptr) break;
      trace("n", node->number, ": its user ends it");
      node->signalled = true;
      if (chance_.one_in(3)) {
        tell_node(*node, Attendee::Event{Attendee::Reported{Notice{"spot", lease}}});
      } else {
        tell_node(*node, Attendee::Event{Attendee::Reported{Leaving{SIGTERM, chance_.one_in(2)}}});
      }
      break;
    case 17:  // The keeper. Of a stalled agent, which would be a known limit: never.
      if (node == nullptr || node->stall.on || node->stall.next > 0ns) break;
      trace("n", node->number, ": the keeper stalls");
      node->keeper_stalled_until = now() + chance_.between(1ms, 2 * lease);
      break;
    default:
      break;
  }
  if (truth_.has_verdict()) verdict_may_be_lost();
}

/// The agent alone, and with it an embedded server.
void World::kill_agent_alone(Node& node) {
  trace("n", node.number, ": the agent is killed");
  node.crashed = true;
  kill_agent(node);
  queue_.after(chance_.between(0ms, 5ms),
               [this, number = node.number] { undertake(number, now() + 10s); });
  come_back(node.host, chance_.between(0s, 2 * settings_.lease));
}

void World::crash_host(Node& node) {
  auto& host = hosts_[node.host];
  trace("host ", node.host, " dies");
  host.up = false;
  for (auto& other : nodes_) {
    if (other.host != node.host || other.over) continue;
    other.crashed = true;
    kill_agent(other);
    for (auto& worker : other.workers) {
      if (worker.serial == 0) continue;
      truth_.worker_ended(other.number, worker.round, worker.rank);
      if (worker.runs) mourn(worker.round);
      worker = Worker{};
    }
    finish(other);
  }
}

/// The launcher is started again on its machine, by whoever starts launchers.
void World::come_back(std::size_t host, Duration after) {
  if (!chance_.one_in(2)) return;
  queue_.after(after, [this, host] {
    const bool is_servers = embedded_ && host == server_.host;
    if (truth_.has_verdict() || !hosts_[host].up || (nodes_.size() >= 9 && !is_servers)) return;
    start_node(add_node(host));
  });
}

void World::cut(Host& host, Duration time) {
  const auto direction = chance_.pick(3);
  trace("host ", &host - hosts_.data(), " is cut off for ",
        std::chrono::duration<double>(time).count(), " s, direction ", direction);
  for (auto& node : nodes_) {
    if (&hosts_[node.host] == &host || &hosts_[server_.host] == &host)
      node.troubled_until = std::max(node.troubled_until, now() + time);
  }
  if (direction != 1) host.out_cut_until = std::max(host.out_cut_until, now() + time);
  if (direction != 0) host.in_cut_until = std::max(host.in_cut_until, now() + time);
}

void World::stall_node(Node& node, Duration time) {
  if (keeper_is_stalled(node)) return;  // Both at once are a known limit.
  trace("n", node.number, " stalls for ", std::chrono::duration<double>(time).count(), " s");
  node.stall.on = true;
  node.troubled_until = std::max(node.troubled_until, now() + time);
  if (node.embeds && server_.core != nullptr && !server_.stall.on) stall_server(time);
  queue_.after(time, [this, number = node.number] {
    auto& stalled = nodes_[number];
    stalled.stall.on = false;
    // Its timers have run out as well; which it looks at first is the loop's affair.
    if (chance_.one_in(2)) stalled.inbox.push_front(Attendee::Event{Attendee::Ticked{}});
    run_node(stalled);
  });
}

void World::command() {
  if (server_.core == nullptr) return;
  rendezvous::Command command;
  switch (chance_.pick(8)) {
    case 0:
      // To nodes that come back later it is of another job, where nothing but its rounds tells them
      // apart and those are not known to this server.
      if (launch_tag_.empty() && server_.instance > 1) return;
      command = rendezvous::StopJob{};
      break;
    case 1:
    case 2:
      command = rendezvous::SetSizes{1 + chance_.pick(settings_.min_nodes),
                                     settings_.max_nodes + chance_.pick(2)};
      break;
    case 3:
    case 4:
      command = rendezvous::RestartJob{};
      break;
    default:
      if (auto* node = some_node()) {
        command = rendezvous::DrainNode{node->incarnation.value, std::nullopt};
        node->signalled = true;
      }
      break;
  }
  trace("an operator's command ", command.index());
  tell_server(Rendezvous::Commanded{{next_command_++}, "j", command});
}

/// From here on everything works.
void World::quieten() {
  trace("faults stop");
  quiet_ = true;
  for (auto& host : hosts_) host.out_cut_until = host.in_cut_until = now();
  for (auto& node : nodes_) node.stall.next = 0ns;
  server_.stall.next = 0ns;
  if (!embedded_) bind_server();
}

/// The verdict is known to no server, and every agent that knows it was hit by a fault, or has
/// left: nobody may be able to tell it.
void World::verdict_may_be_lost() {
  if (truth_.is_verdict_lost() || server_.knows_verdict) return;
  const auto patience = settings_.lease + settings_.lease / 10;
  const bool known = std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& node) {
    const bool stays = node.agent_lives || (planted(Planted::VerdictAndOut) && !node.crashed);
    return stays && node.knows_verdict && !node.stall.on && node.stall.next == 0ns &&
           !is_cut(node) &&
           (server_.core == nullptr || *node.knows_verdict + patience > now() + 500ms);
  });
  if (known) return;
  trace("the verdict may be lost");
  truth_.verdict_lost();
}

}  // namespace muster::sim

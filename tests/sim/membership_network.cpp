#include "tests/sim/membership_world.hpp"

// Streams: in order, late, in bursts, cut in one direction or both, reset, half-open.
namespace muster::sim {
using namespace std::chrono_literals;

Duration World::latency() {
  if (!quiet_ && spiky_ && chance_.one_in(50))
    return chance_.between(0s, settings_.lease + settings_.lease / 5);
  return chance_.between(50us, 2ms);
}

/// When what is sent now arrives, on a stream whose last message arrives then.
TimePoint World::passage(TimePoint last, TimePoint cut_until) {
  auto arrival = now() + latency();
  if (now() < cut_until) arrival = std::max(arrival, cut_until + chance_.between(0s, 300ms));
  return std::max(arrival, last);
}

/// On the server's own machine there is nothing to cut.
bool World::is_local(const Node& node) const { return node.host == server_.host; }

/// Both ends may be cut off: what the node sends waits until then.
TimePoint World::out_cut_of(const Node& node) const {
  if (is_local(node)) return {};
  return std::max(hosts_[node.host].out_cut_until, hosts_[server_.host].in_cut_until);
}

TimePoint World::in_cut_of(const Node& node) const {
  if (is_local(node)) return {};
  return std::max(hosts_[node.host].in_cut_until, hosts_[server_.host].out_cut_until);
}

bool World::is_cut(const Node& node) const {
  return !hosts_[node.host].up || !hosts_[server_.host].up || now() < out_cut_of(node) ||
         now() < in_cut_of(node);
}

void World::dial(std::size_t number, Attendee::Line line, TimePoint patience_ends) {
  auto& node = nodes_[number];
  if (!node.agent_lives || node.links[line.value] != 0) return;  // Hung up meanwhile.
  if (is_cut(node)) {
    if (now() >= patience_ends) {
      tell_node(node, Attendee::Event{Attendee::Dropped{line, "connection timed out"}});
      return;
    }
    const auto heals =
        hosts_[server_.host].up ? std::max(out_cut_of(node), in_cut_of(node)) + 1ms : patience_ends;
    queue_.at(std::min(heals, patience_ends),
              [this, number, line, patience_ends] { dial(number, line, patience_ends); });
    return;
  }
  if (server_.core == nullptr) {
    tell_node(node, Attendee::Event{Attendee::Dropped{line, "connection refused"}});
    return;
  }
  const auto id = links_.size();
  Link link;
  link.node = number;
  link.line = line;
  link.server = server_.instance;
  links_.push_back(std::move(link));
  node.links[line.value] = id;
  tell_node(node, Attendee::Event{Attendee::Connected{line}});
}

void World::send_to_server(std::size_t id, AgentMessage message) {
  auto& link = links_[id];
  if (!link.agent_open) return;
  link.to_server = passage(link.to_server, out_cut_of(nodes_[link.node]));
  queue_.at(link.to_server,
            [this, id, message = std::move(message)] { arrive_at_server(id, message); });
}

void World::arrive_at_server(std::size_t id, const AgentMessage& message) {
  auto& link = links_[id];
  if (link.lossy || !link.server_open || server_.core == nullptr || link.server != server_.instance)
    return;
  if (const auto heals = out_cut_of(nodes_[link.node]); now() < heals) {  // It began meanwhile.
    link.to_server = std::max(link.to_server, heals);
    queue_.at(heals, [this, id, message] { arrive_at_server(id, message); });
    return;
  }
  const auto* report = std::get_if<Report>(&message);
  const auto* hello = report == nullptr ? nullptr : std::get_if<Hello>(report);
  if (hello == nullptr) {
    tell_server(Rendezvous::Heard{LinkId{id}, message});
    return;
  }
  Rendezvous::Greeted greeted{LinkId{id}, *hello,
                              "10.0.0." + std::to_string(nodes_[link.node].host), "10.0.1.1"};
  plant_in_greeting(greeted.hello);
  link.greeted = hello->incarnation;
  tell_server(std::move(greeted));
}

void World::send_to_agent(std::size_t id, ServerMessage message) {
  auto& link = links_[id];
  if (!link.server_open) return;
  link.to_agent = passage(link.to_agent, in_cut_of(nodes_[link.node]));
  queue_.at(link.to_agent,
            [this, id, message = std::move(message)] { arrive_at_agent(id, message); });
}

void World::arrive_at_agent(std::size_t id, const ServerMessage& message) {
  auto& link = links_[id];
  auto& node = nodes_[link.node];
  const bool heard = link.agent_open || planted(Planted::OrdersFromAnyConnection);
  if (link.lossy || !heard || !node.agent_lives || !hosts_[node.host].up) return;
  if (const auto heals = in_cut_of(node); now() < heals) {
    link.to_agent = std::max(link.to_agent, heals);
    queue_.at(heals, [this, id, message] { arrive_at_agent(id, message); });
    return;
  }
  if (planted(Planted::LeaseRenewedByAnything) && !std::holds_alternative<Refusal>(message))
    tell_node(node,
              Attendee::Event{Attendee::Received{link.line, Pong{.number = node.newest_ping}}});
  if (planted(Planted::OrdersFromAnyConnection)) {
    const auto* directive = std::get_if<Directive>(&message);
    const auto* assignment =
        directive == nullptr ? nullptr : std::get_if<Assignment>(&directive->order);
    if (assignment != nullptr && node.todo.empty() && !has_workers(node)) {
      node.group.emplace(node.settings);  // Remembers no round.
      tell_node(node, WorkerGroup::Event{WorkerGroup::Assigned{*assignment}});
    }
    if (assignment != nullptr || !link.agent_open) return;
  }
  const auto* directive = std::get_if<Directive>(&message);
  const auto* verdict = directive == nullptr ? nullptr : std::get_if<Verdict>(&directive->order);
  Attendee::Received received{link.line, message};
  tell_node(node, Attendee::Event{std::move(received)});
  if (verdict == nullptr) return;
  node.told_alone = verdict->alone;
  truth_.verdict_told(*verdict);
}

void World::close_from_agent(std::size_t id) {
  auto& link = links_[id];
  if (!std::exchange(link.agent_open, false)) return;
  if (!hosts_[nodes_[link.node].host].up) return;  // Silence.
  link.to_server = passage(link.to_server, out_cut_of(nodes_[link.node]));
  queue_.at(link.to_server, [this, id] {
    auto& closed = links_[id];
    if (!closed.server_open || server_.core == nullptr || closed.server != server_.instance) return;
    closed.server_open = false;
    lose(id);
  });
}

void World::close_from_server(std::size_t id, const std::string& why) {
  auto& link = links_[id];
  if (!std::exchange(link.server_open, false) || !link.agent_open) return;
  link.to_agent = passage(link.to_agent, in_cut_of(nodes_[link.node]));
  queue_.at(link.to_agent, [this, id, why] {
    auto& closed = links_[id];
    auto& node = nodes_[closed.node];
    if (!std::exchange(closed.agent_open, false) || !node.agent_lives) return;
    tell_node(node, Attendee::Event{Attendee::Dropped{closed.line, why}});
  });
}

/// By a middlebox, which may tell both ends, or one only.
void World::reset(std::size_t id) {
  auto& link = links_[id];
  link.lossy = true;
  // Whoever is not told finds out at half the lease.
  auto& node = nodes_[link.node];
  node.troubled_until = std::max(node.troubled_until, now() + settings_.lease);
  const auto told = chance_.pick(3);  // 1: the agent only, 2: the server only.
  if (told != 2) close_from_server(id, "connection reset by peer");
  if (told == 1) {
    link.server_open = true;  // As far as the server knows.
  } else if (server_.core != nullptr && link.server == server_.instance) {
    link.server_open = false;
    lose(id);
  }
}

/// The server sees a connection's end.
void World::lose(std::size_t id) {
  tell_server(Rendezvous::Lost{LinkId{id}});
  if (!planted(Planted::ClosedIsDead) || links_[id].greeted.value.empty()) return;
  Rendezvous::Departed departed;
  departed.link = LinkId{farewell_links_++};
  departed.incarnation = links_[id].greeted;
  departed.farewell.job = "j";
  departed.farewell.round = nodes_[links_[id].node].attendee.holds();
  farewell_of_[departed.link.value] = links_[id].node;
  tell_server(std::move(departed));
}

/// On a connection of its own, again and again until it is acknowledged or the time is over.
void World::say_farewell(std::size_t number, std::optional<RoundId> round, TimePoint until) {
  auto& node = nodes_[number];
  if (acknowledged_.contains(number) || now() >= until || !hosts_[node.host].up) {
    finish(node);
    return;
  }
  if (!is_cut(node) && server_.core != nullptr) {
    queue_.after(latency(), [this, number, round] {
      if (server_.core == nullptr) return;
      const auto id = farewell_links_++;
      farewell_of_[id] = number;
      Rendezvous::Departed departed;
      departed.link = LinkId{id};
      departed.incarnation = nodes_[number].incarnation;
      departed.farewell.job = "j";
      departed.farewell.round = round;
      if (planted(Planted::FarewellOfTheKnownOnly) &&
          !server_.known.contains(departed.incarnation)) {
        acknowledged_.insert(number);
        server_.farewells.insert(departed.incarnation);
        return;
      }
      tell_server(std::move(departed));
    });
  }
  queue_.after(100ms, [this, number, round, until] { say_farewell(number, round, until); });
}

}  // namespace muster::sim

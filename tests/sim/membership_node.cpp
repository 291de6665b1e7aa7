#include "tests/sim/membership_world.hpp"

#include <algorithm>
#include <csignal>

// A launcher: the agent, which carries out what its two cores decide, and the keeper above it.
namespace muster::sim {
using namespace std::chrono_literals;
namespace {

/// Events of the cores among all deeds: what waits in the inbox.
constexpr std::size_t kAttendeeAction = 1;
constexpr std::size_t kGroupAction = 3;

}  // namespace

void World::start_node(std::size_t number) {
  auto& node = nodes_[number];
  // Without a launch tag an id is free again when its job has ended: another job's nodes.
  if (!hosts_[node.host].up || (truth_.has_verdict() && launch_tag_.empty())) return;
  trace("n", number, " starts on host ", node.host);
  node.agent_lives = true;
  if (node.embeds) bind_server();
  for (auto& action : node.attendee.start(clock_of(node)))
    node.todo.emplace_back(std::move(action));
  run_node(node);
}

void World::tell_node(Node& node, Deed event) {
  if (!node.agent_lives) return;
  node.inbox.push_back(std::move(event));
  run_node(node);
}

void World::run_node(Node& node) {
  if (node.busy || node.stall.on) return;
  node.busy = true;
  while (node.agent_lives && !node.stall.on) {
    if (node.todo.empty()) {
      if (node.inbox.empty()) break;
      // Before a death is looked at: it may have come of the lease's end.
      const auto* event = std::get_if<WorkerGroup::Event>(&node.inbox.front());
      if (event != nullptr && std::holds_alternative<WorkerGroup::Exited>(*event) &&
          page_is_over(node))
        node.todo.emplace_back(Attendee::Event{Attendee::Ticked{}});
      node.todo.push_back(std::move(node.inbox.front()));
      node.inbox.pop_front();
    }
    const auto index = node.todo.front().index();
    const auto* action = std::get_if<WorkerGroup::Action>(&node.todo.front());
    const bool spawns = action != nullptr && std::holds_alternative<WorkerGroup::Spawn>(*action);
    if (node.stall.next > 0ns && (index == kAttendeeAction || index == kGroupAction) &&
        (spawns || !node.stall.at_spawn)) {
      stall_node(node, std::exchange(node.stall.next, 0ns));
      if (node.stall.on) break;
    }
    const auto deed = std::move(node.todo.front());
    node.todo.pop_front();
    node.last_deed = clock_of(node);
    std::visit([this, &node](const auto& what) { do_deed(node, what); }, deed);
  }
  node.busy = false;
  arm_node(node);
}

void World::arm_node(Node& node) {
  if (!node.agent_lives || node.stall.on) return;
  auto deadline = node.attendee.next_deadline();
  if (const auto other = node.group->next_deadline(); other && (!deadline || *other < *deadline))
    deadline = other;
  if (!deadline) return;
  const auto at = std::max(hosts_[node.host].clock.when(*deadline), now());
  if (node.armed && *node.armed <= at) return;
  node.armed = at;
  queue_.at(at, [this, at, number = node.number] {
    auto& armed = nodes_[number];
    if (armed.armed != at) return;
    armed.armed.reset();
    if (!armed.agent_lives || armed.stall.on) return;
    const auto here = clock_of(armed);
    const auto attendee = armed.attendee.next_deadline();
    const auto group = armed.group->next_deadline();
    if (attendee && *attendee <= here)
      armed.inbox.emplace_back(Attendee::Event{Attendee::Ticked{}});
    if (group && *group <= here)
      armed.inbox.emplace_back(WorkerGroup::Event{WorkerGroup::Ticked{}});
    run_node(armed);
  });
}

void World::do_deed(Node& node, const Attendee::Event& event) {
  auto actions = node.attendee.step(clock_of(node), event);
  node.todo.insert(node.todo.begin(), std::make_move_iterator(actions.begin()),
                   std::make_move_iterator(actions.end()));
}

void World::do_deed(Node& node, const Attendee::Action& action) {
  std::visit([this, &node](const auto& what) { act(node, what); }, action);
}

void World::do_deed(Node& node, const WorkerGroup::Event& event) {
  node.lease_was_good = !page_is_over(node);
  auto actions = node.group->step(clock_of(node), event);
  node.todo.insert(node.todo.begin(), std::make_move_iterator(actions.begin()),
                   std::make_move_iterator(actions.end()));
}

void World::do_deed(Node& node, const WorkerGroup::Action& action) {
  std::visit([this, &node](const auto& what) { act(node, what); }, action);
}

void World::act(Node& node, const Attendee::Dial& dialled) {
  if (node.links.size() <= dialled.line.value) node.links.resize(dialled.line.value + 1);
  const auto patience = now() + settings_.lease / 2;
  queue_.after(latency(), [this, number = node.number, line = dialled.line, patience] {
    dial(number, line, patience);
  });
}

void World::act(Node& node, const Attendee::HangUp& hang_up) {
  auto& link = node.links[hang_up.line.value];
  if (link == 0) {
    link = kNoLink;  // The dial comes to nothing.
  } else {
    close_from_agent(link);
  }
}

void World::act(Node& node, const Attendee::Transmit& transmit) {
  if (const auto* ping = std::get_if<Ping>(&transmit.message)) node.newest_ping = ping->number;
  if (trace_ != nullptr && std::holds_alternative<Report>(transmit.message)) {
    static constexpr const char* kReports[] = {"Hello",  "Acknowledged", "Unreachable", "Started",
                                               "Failed", "Succeeded",    "Stopped",     "Empty",
                                               "Stuck",  "Leaving",      "VerdictSeen", "Notice",
                                               "Saving", "StoreRefused", "Progress"};
    trace("n", node.number, " says ", kReports[std::get<Report>(transmit.message).index()]);
  }
  send_to_server(node.links[transmit.line.value], transmit.message);
  const auto* report = std::get_if<Report>(&transmit.message);
  if (report == nullptr || !std::holds_alternative<VerdictSeen>(*report) || node.knows_verdict ||
      node.told_alone)
    return;
  node.knows_verdict = now();
  if (planted(Planted::VerdictAndOut))
    node.inbox.push_back(Attendee::Event{Attendee::Received{transmit.line, Dismissal{}}});
}

void World::act(Node& node, const Attendee::Renew& renew) {
  if (node.attendee.holds() && page_is_over(node)) {
    node.todo.emplace_front(Attendee::Event{Attendee::Lapsed{}});
    return;
  }
  node.page = renew.ends;
  queue_.at(hosts_[node.host].clock.when(renew.ends),
            [this, number = node.number, ends = renew.ends] {
              if (nodes_[number].page == ends) guard(number);
            });
}

void World::act(Node& node, const Attendee::HalfLease&) {
  node.todo.emplace_back(WorkerGroup::Event{WorkerGroup::LeaseHalfOver{}});
}

void World::act(Node& node, const Attendee::Fence& fence) {
  trace("n", node.number, " is fenced: ", fence.reason);
  if (planted(Planted::GraceAtLeaseEnd) && has_workers(node)) {
    grant_grace(node);
    return;
  }
  // At once: before any death that came of it.
  node.todo.emplace_front(WorkerGroup::Event{WorkerGroup::LeaseEnded{fence.reason}});
}

/// The planted fault: they are asked, and have the grace.
void World::grant_grace(Node& node) {
  for (std::uint32_t index = 0; index < node.workers.size(); ++index)
    act(node, WorkerGroup::Signal{index, SIGTERM});
  queue_.after(grace_, [this, number = node.number] {
    tell_node(nodes_[number], WorkerGroup::Event{WorkerGroup::LeaseEnded{"late"}});
  });
}

void World::act(Node& node, const Attendee::Deliver& deliver) {
  if (const auto* assignment = std::get_if<Assignment>(&deliver.order)) {
    truth_.told_to_start(node.number, assignment->round);
    node.served = true;
    trace("n", node.number, " is to start round ", assignment->round.number, ", rank ",
          assignment->rank_offset.value, " of ", assignment->world_size, ", node rank ",
          assignment->node_rank.value, ", restarts ", assignment->restarts);
    node.todo.emplace_back(WorkerGroup::Event{WorkerGroup::Assigned{*assignment}});
  } else if (const auto* stop = std::get_if<Stop>(&deliver.order)) {
    truth_.told_to_stop(node.number, stop->round);
    node.stopped = stop->round;
    trace("n", node.number, " is to stop round ", stop->round.number, ": ", stop->reason);
    node.todo.emplace_back(WorkerGroup::Event{WorkerGroup::StopOrdered{*stop}});
  } else if (const auto* prepare = std::get_if<Prepare>(&deliver.order)) {
    node.todo.emplace_back(WorkerGroup::Event{WorkerGroup::PrepareOrdered{*prepare}});
  } else if (const auto* up = std::get_if<MasterUp>(&deliver.order)) {
    node.todo.emplace_back(WorkerGroup::Event{WorkerGroup::MasterIsUp{up->round}});
  } else {
    truth_.breaks("a verdict was delivered to the worker group");
  }
}

void World::act(Node& node, const Attendee::Say& say) { trace("n", node.number, ": ", say.text); }

void World::act(Node& node, const Attendee::Leave& leave) {
  trace("n", node.number, " leaves with ", leave.exit_code, ": ", leave.message);
  if (std::any_of(node.workers.begin(), node.workers.end(),
                  [](const Worker& worker) { return worker.runs; }))
    truth_.breaks("an agent left while its workers ran");
  node.left = leave;
  if (leave.verdict) truth_.verdict_told(*leave.verdict);
  const bool is_orphan = embedded_ && server_.core == nullptr;
  if (!leave.verdict && !node.signalled && !truth_.is_verdict_lost() && !is_orphan)
    truth_.breaks("n" + std::to_string(node.number) + " left without a verdict: " + leave.message);
  kill_agent(node);
  say_farewell(node.number, node.attendee.holds(), now() + 2s);
}

void World::act(Node& node, const WorkerGroup::HostStore& host) {
  node.hosts_store = host.assignment.round;
  if (!quiet_ && chance_.one_in(100)) {
    truth_.worker_failed(host.assignment.round);
    node.todo.emplace_front(WorkerGroup::Event{WorkerGroup::NotHosted{"address in use"}});
    return;
  }
  node.todo.emplace_front(WorkerGroup::Event{WorkerGroup::Hosted{}});
}

void World::act(Node& node, const WorkerGroup::Knock& knock_at) {
  node.knocking = knock_at.assignment;
  queue_.after(
      chance_.between(1ms, 5ms),
      [this, number = node.number, round = knock_at.assignment.round] { knock(number, round); });
}

void World::act(Node& node, const WorkerGroup::StopKnocking&) { node.knocking.reset(); }

/// Tries the way to the master's store once, and again until it is told to stop.
void World::knock(std::size_t number, RoundId round) {
  auto& node = nodes_[number];
  if (!node.agent_lives || !node.knocking || node.knocking->round != round) return;
  const auto master = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& other) {
    return other.agent_lives && other.hosts_store == round && !is_cut(other);
  });
  const bool hosted = node.knocking->store_on_server ? server_.core != nullptr && server_.store_open
                                                     : master != nodes_.end();
  if (hosted && !is_cut(node)) {
    node.knocking.reset();
    tell_node(node, WorkerGroup::Event{WorkerGroup::KnockHeard{}});
    return;
  }
  tell_node(node, WorkerGroup::Event{WorkerGroup::KnockFailed{"here to there: timed out"}});
  queue_.after(200ms, [this, number, round] { knock(number, round); });
}

void World::act(Node& node, const WorkerGroup::Spawn& spawn) {
  const bool checked_before = planted(Planted::LeaseCheckedBeforeForkOnly) && node.lease_was_good;
  if (page_is_over(node) && !checked_before) {
    node.todo.emplace_front(
        WorkerGroup::Event{WorkerGroup::NotSpawned{spawn.index, "the lease has ended", false}});
    return;
  }
  if (!quiet_ && chance_.one_in(300)) {
    truth_.worker_failed(spawn.assignment.round);
    node.todo.emplace_front(
        WorkerGroup::Event{WorkerGroup::NotSpawned{spawn.index, "no more processes", false}});
    return;
  }
  begin(node, spawn.index, spawn.assignment);
  node.todo.emplace_front(WorkerGroup::Event{WorkerGroup::Spawned{spawn.index}});
}

void World::act(Node& node, const WorkerGroup::Signal& signal) {
  if (signal.index >= node.workers.size()) return;
  auto& worker = node.workers[signal.index];
  if (worker.serial == 0 || !worker.runs || worker.asked == signal.signal) return;
  worker.asked = signal.signal;
  if (!worker.obeys) return;
  if (signal.signal == preempt_signal_ && chance_.one_in(3)) {  // It saves, and trains on.
    worker.asked = 0;
    return;
  }
  // Some save a checkpoint first, and exit with 0.
  const ExitStatus status = chance_.one_in(3) ? ExitStatus{} : ExitStatus{.signal = signal.signal};
  queue_.after(chance_.between(1ms, 2s),
               [this, number = node.number, index = signal.index, serial = worker.serial, status] {
                 auto* asked = find_worker(number, index, serial);
                 if (asked != nullptr && asked->runs)
                   end_worker(nodes_[number], index, status, Cause::OutsideSignal);
               });
}

/// Workers here have no children.
void World::act(Node& node, const WorkerGroup::SignalTree&) {
  if (!has_workers(node)) tell_node(node, WorkerGroup::Event{WorkerGroup::TreeEmptied{}});
}

void World::act(Node& node, const WorkerGroup::KillTree&) { kill_tree(node); }

void World::act(Node& node, const WorkerGroup::Send& send) {
  node.todo.emplace_back(Attendee::Event{Attendee::Reported{send.report}});
}

void World::act(Node& node, const WorkerGroup::EndRound& end) {
  if (has_workers(node)) truth_.breaks("a round was over while workers of it were there");
  node.hosts_store.reset();
  node.knocking.reset();
  ++node.port;
  const auto host = "10.0.0." + std::to_string(node.host);
  node.todo.emplace_back(
      Attendee::Event{Attendee::Reported{Empty{end.round, end.victims, {host, node.port}}}});
}

void World::act(Node& node, const WorkerGroup::GiveUp& give_up) {
  node.todo.emplace_back(Attendee::Event{Attendee::Reported{Stuck{give_up.round, {4711}}}});
}

void World::act(Node&, const WorkerGroup::TellWorkers&) {}  // They have no beacon.

/// Past it nothing may run. Without a lease ever, neither.
bool World::page_is_over(const Node& node) const {
  auto ends = node.page.value_or(TimePoint::min());
  if (planted(Planted::GraceAtLeaseEnd) && node.page) ends += grace_ * 2;
  if (planted(Planted::KeeperJudgesByTick) && node.page) ends = node.last_deed + settings_.lease;
  return clock_of(node) >= ends;
}

/// The keeper looks at the page: past the lease's end it kills, and keeps looking while something
/// is there or may yet appear.
void World::guard(std::size_t number) {
  auto& node = nodes_[number];
  if (!node.keeper_lives || node.over || !hosts_[node.host].up) return;
  if (keeper_is_stalled(node)) {
    queue_.at(node.keeper_stalled_until, [this, number] { guard(number); });
    return;
  }
  if (!page_is_over(node)) {
    if (planted(Planted::GraceAtLeaseEnd) || planted(Planted::KeeperJudgesByTick))
      queue_.after(settings_.lease / 10, [this, number, page = node.page] {
        if (nodes_[number].page == page) guard(number);
      });
    return;
  }
  if (has_workers(node)) {
    trace("n", number, ": the keeper kills");
    kill_tree(node);
  }
}

/// The agent's process ends, whatever the reason; its connections end with it.
void World::kill_agent(Node& node) {
  node.agent_lives = false;
  node.todo.clear();
  node.inbox.clear();
  node.knocking.reset();
  node.hosts_store.reset();
  for (const auto link : node.links) {
    if (link != 0 && link != kNoLink) close_from_agent(link);
  }
  if (node.embeds) crash_server();
}

/// Whoever is left of keeper and agent ends the tree, and says farewell when it is empty.
void World::undertake(std::size_t number, TimePoint until) {
  auto& node = nodes_[number];
  if (!hosts_[node.host].up) return;
  if (planted(Planted::KeeperIsTheAgentsChild)) {  // The orphans climbed past it: it sees none.
    say_farewell(number, node.attendee.holds(), now() + 2s);
    return;
  }
  kill_tree(node);  // A stalled keeper does not; the parent-death signal does.
  if (node.keeper_lives && keeper_is_stalled(node)) {
    queue_.at(node.keeper_stalled_until, [this, number] { undertake(number, now() + 10s); });
    return;
  }
  if (!has_workers(node)) {
    say_farewell(number, node.attendee.holds(), now() + 2s);
  } else if (now() >= until) {
    finish(node);  // The lease decides.
  } else {
    queue_.after(20ms, [this, number, until] { undertake(number, until); });
  }
}

/// Nothing of the launcher is left.
void World::finish(Node& node) {
  node.over = true;
  node.keeper_lives = false;
}

}  // namespace muster::sim

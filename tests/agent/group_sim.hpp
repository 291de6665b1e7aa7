#pragma once

#include "agent/core/worker_group.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster::agent {

using Group = WorkerGroup;

/// Drives a group as the agent would, with workers that are only names: time is virtual, every
/// action is noted.
class GroupSim {
 public:
  explicit GroupSim(std::uint32_t workers, Duration grace = std::chrono::seconds(30),
                    int preempt_signal = 0)
      : GroupSim({.workers = workers, .grace = grace, .preempt_signal = preempt_signal}) {}
  explicit GroupSim(Group::Settings settings) : group(settings) {}

  void assign(std::uint64_t number, std::uint32_t node_rank = 0, std::uint32_t nodes = 1) {
    Assignment assignment;
    assignment.round = {1, number};
    assignment.node_rank = {node_rank};
    assignment.nodes = nodes;
    assignment.rank_offset = {node_rank * 4};
    assignment.master = {"head", 4711};
    assignment.store_on_server = store_on_server;
    feed(Group::Assigned{assignment});
  }
  void stop(std::uint64_t number, int signal = SIGTERM) {
    feed(Group::StopOrdered{{.round = {1, number}, .signal = signal, .reason = "test"}});
  }
  void exit(std::uint32_t index, ExitStatus status, Cause cause = Cause::WorkerError) {
    alive.erase(index);
    WorkerFailure evidence;
    evidence.cause = cause;
    feed(Group::Exited{index, status, evidence});
    if (alive.empty() && orphans == 0) feed(Group::TreeEmptied{});
  }
  void advance(Duration by) {
    const auto until = now + by;
    while (group.next_deadline() && *group.next_deadline() <= until) {
      now = std::max(now, *group.next_deadline());
      feed(Group::Ticked{});
    }
    now = until;
  }

  void feed(const Group::Event& event) {
    for (const auto& action : group.step(now, event))
      std::visit([this](const auto& what) { act(what); }, action);
  }

  Group group;
  TimePoint now{};
  std::set<std::uint32_t> alive;
  int orphans = 0;
  bool orphans_obey = false;
  std::vector<std::pair<int, bool>> tree_signals;
  std::uint32_t unstartable = 1000;
  bool store_on_server = false;
  int hosted = 0;
  int knocks = 0;
  bool knocking_stopped = false;
  int kills = 0;
  bool killable = true;
  std::vector<std::pair<std::uint32_t, int>> signalled;
  std::vector<std::string> reports;  // Without Acknowledged, Stopped and Saving.
  int acknowledged = 0;
  int stopped = 0;
  std::vector<std::uint32_t> saving;
  std::vector<Group::TellWorkers::Word> told;
  std::vector<Victim> victims;
  bool gave_up = false;

 private:
  void act(const Group::HostStore&) {
    ++hosted;
    feed(Group::Hosted{});
  }
  void act(const Group::Spawn& spawn) {
    if (spawn.index == unstartable) {
      feed(Group::NotSpawned{spawn.index, "exec x: no such file", true});
    } else {
      alive.insert(spawn.index);
      feed(Group::Spawned{spawn.index});
    }
  }
  void act(const Group::Signal& signal) { signalled.emplace_back(signal.index, signal.signal); }
  void act(const Group::SignalTree& signal) {
    tree_signals.emplace_back(signal.signal, signal.of_all);
    if (orphans > 0 && orphans_obey) orphans = 0;
    if (alive.empty() && orphans == 0) feed(Group::TreeEmptied{});
  }
  void act(const Group::KillTree&) {
    ++kills;
    if (!killable) return;
    orphans = 0;
    for (const auto index : std::set(alive)) exit(index, {.signal = SIGKILL});
    if (alive.empty()) feed(Group::TreeEmptied{});
  }
  void act(const Group::Send& send) {
    if (std::holds_alternative<Started>(send.report)) reports.emplace_back("started");
    if (std::holds_alternative<Succeeded>(send.report)) reports.emplace_back("succeeded");
    if (std::holds_alternative<Acknowledged>(send.report)) ++acknowledged;
    if (std::holds_alternative<Stopped>(send.report)) ++stopped;
    if (const auto* saves = std::get_if<Saving>(&send.report)) saving.push_back(saves->left);
    if (const auto* unreachable = std::get_if<Unreachable>(&send.report))
      reports.push_back("unreachable " + unreachable->detail);
    const auto* failed = std::get_if<Failed>(&send.report);
    if (failed != nullptr && failed->failure.cause == Cause::LostNode) {
      reports.push_back("lost: " + failed->failure.detail);
    } else if (failed != nullptr) {
      reports.push_back("failed " + std::to_string(failed->failure.rank.value));
    }
  }
  void act(const Group::Knock&) { ++knocks; }
  void act(const Group::StopKnocking&) { knocking_stopped = true; }
  void act(const Group::TellWorkers& tell) { told.push_back(tell.word); }
  void act(const Group::EndRound& end) {
    reports.emplace_back("empty");
    victims = end.victims;
  }
  void act(const Group::GiveUp&) { gave_up = true; }
};

using Reports = std::vector<std::string>;
using Signals = std::vector<std::pair<std::uint32_t, int>>;
using TreeSignals = std::vector<std::pair<int, bool>>;

}  // namespace muster::agent

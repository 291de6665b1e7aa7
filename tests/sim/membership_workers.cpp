#include "tests/sim/membership_world.hpp"

#include <algorithm>
#include <csignal>

// Training processes: they finish together, fail, ignore signals, die slowly or not at all, and
// fail at once when a peer has gone.
namespace muster::sim {
using namespace std::chrono_literals;

World::Worker* World::find_worker(std::size_t number, std::uint32_t index, std::uint64_t serial) {
  auto& workers = nodes_[number].workers;
  if (index >= workers.size() || workers[index].serial != serial) return nullptr;
  return &workers[index];
}

bool World::has_workers(const Node& node) {
  return std::any_of(node.workers.begin(), node.workers.end(),
                     [](const Worker& worker) { return worker.serial != 0; });
}

/// The worker's first instruction.
void World::begin(Node& node, std::uint32_t index, const Assignment& assignment) {
  if (node.workers.size() <= index) node.workers.resize(index + 1);
  auto& worker = node.workers[index];
  if (worker.serial != 0) truth_.breaks("a worker was started over another");
  worker = Worker{};
  worker.round = assignment.round;
  worker.rank = assignment.rank_offset.value + index;
  worker.serial = next_serial_++;
  worker.runs = true;
  worker.obeys = !chance_.one_in(6);
  worker.killable = quiet_ || !chance_.one_in(400);
  trace("n", node.number, ": rank ", worker.rank, " of round ", worker.round.number, " runs");
  truth_.worker_runs(node.number, worker.round, worker.rank);
  const auto serial = worker.serial;
  queue_.after(work_ + chance_.between(0ms, 200ms),
               [this, number = node.number, index, serial] { train(number, index, serial); });
  if (tells_steps_) {
    const auto step = 1 + steps_.pick(6);
    queue_.after(steps_.between(1ms, work_), [this, number = node.number, index, serial, step] {
      tell_step(number, index, serial, step);
    });
  }
  if (!quiet_ && chance_.one_in(12)) {
    queue_.after(chance_.between(1ms, work_), [this, number = node.number, index, serial] {
      auto* failing = find_worker(number, index, serial);
      if (!quiet_ && failing != nullptr && failing->runs) fail_by_itself(nodes_[number], index);
    });
  }
}

/// Its work is done, unless it waits for a peer that is not there.
void World::train(std::size_t number, std::uint32_t index, std::uint64_t serial) {
  const auto* worker = find_worker(number, index, serial);
  const auto asked_to_end = [this](const Worker& one) {
    return one.asked != 0 && (one.asked != preempt_signal_ || one.obeys);
  };
  if (worker == nullptr || !worker->runs || asked_to_end(*worker)) return;
  if (!truth_.is_complete(worker->round)) {
    queue_.after(1s, [this, number, index, serial] { train(number, index, serial); });
    return;
  }
  truth_.worker_succeeded(worker->round, worker->rank);
  end_worker(nodes_[number], index, {}, Cause::WorkerError);
}

/// Its agent has looked at the beacons of its node, and reports what they say.
void World::tell_step(std::size_t number, std::uint32_t index, std::uint64_t serial,
                      std::uint64_t step) {
  auto* teller = find_worker(number, index, serial);
  if (teller == nullptr || !teller->runs) return;
  teller->step = step;
  truth_.worker_told(step);
  Progress progress{teller->round, {}};
  for (const auto& worker : nodes_[number].workers) {
    if (worker.serial != 0 && worker.step > 0)
      progress.workers.push_back(
          {.rank = {worker.rank}, .step = worker.step, .saves = 0, .phase = {}, .quiet = {}});
  }
  tell_node(nodes_[number], Attendee::Event{Attendee::Reported{std::move(progress)}});
}

void World::fail_by_itself(Node& node, std::uint32_t index) {
  const auto& worker = node.workers[index];
  // One that was asked to save only may fail of its own, one that was asked to end does as told.
  if (worker.asked == 0 || worker.asked == preempt_signal_) truth_.worker_failed(worker.round);
  const bool crash = chance_.one_in(2);
  trace("n", node.number, ": rank ", worker.rank, " fails by itself");
  end_worker(node, index, crash ? ExitStatus{.signal = SIGSEGV} : ExitStatus{.code = 3},
             Cause::WorkerError);
}

/// It is gone, and its agent may learn of it.
void World::end_worker(Node& node, std::uint32_t index, ExitStatus status, Cause cause) {
  auto& worker = node.workers[index];
  const auto ended = worker;
  worker = Worker{};
  truth_.worker_ended(node.number, ended.round, ended.rank);
  if (node.agent_lives) {
    WorkerFailure evidence;
    evidence.cause = cause;
    if (ended.step > 0) evidence.step = ended.step;
    tell_node(node, WorkerGroup::Event{WorkerGroup::Exited{index, status, evidence}});
    if (!has_workers(node)) tell_node(node, WorkerGroup::Event{WorkerGroup::TreeEmptied{}});
  }
  if (!status.success() && ended.runs) mourn(ended.round);
}

/// Its peers learn of a death from their connections, within milliseconds, and most fail of it.
void World::mourn(RoundId round) {
  for (auto& node : nodes_) {
    for (std::uint32_t index = 0; index < node.workers.size(); ++index) {
      const auto& peer = node.workers[index];
      if (peer.serial == 0 || !peer.runs || peer.round != round || chance_.one_in(5)) continue;
      queue_.after(chance_.between(100us, 50ms),
                   [this, number = node.number, index, serial = peer.serial] {
                     const auto* bereaved = find_worker(number, index, serial);
                     if (bereaved == nullptr || !bereaved->runs) return;
                     end_worker(nodes_[number], index, {.code = 1}, Cause::PeerLoss);
                   });
    }
  }
}

/// SIGKILL: from this instant none of them executes another instruction. They are gone soon after,
/// unless the kernel holds them.
void World::kill_tree(Node& node) {
  for (std::uint32_t index = 0; index < node.workers.size(); ++index) {
    auto& worker = node.workers[index];
    if (worker.serial == 0) continue;
    if (!worker.runs) continue;
    worker.runs = false;
    truth_.worker_ended(node.number, worker.round, worker.rank);
    mourn(worker.round);
    if (!worker.killable) continue;
    queue_.after(chance_.between(0ms, 30ms),
                 [this, number = node.number, index, serial = worker.serial] {
                   if (find_worker(number, index, serial) != nullptr)
                     end_worker(nodes_[number], index, {.signal = SIGKILL}, Cause::OutsideSignal);
                 });
  }
  if (!has_workers(node)) tell_node(node, WorkerGroup::Event{WorkerGroup::TreeEmptied{}});
}

}  // namespace muster::sim

// The agent's workers as processes: started, signalled, watched and reaped.

#include "agent/core/evidence.hpp"
#include "agent/run/agent.hpp"
#include "agent/run/error_file.hpp"
#include "base/posix/fork.hpp"
#include "base/posix/process_tree.hpp"
#include "base/posix/room.hpp"
#include "base/posix/wall_clock.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

namespace muster::agent {
namespace asio = boost::asio;

/// Opens the streams of a worker and fills its command in.
Result<std::unique_ptr<Worker>> Agent::prepare(const WorkerGroup::Spawn& spawn,
                                               posix::Command& command) {
  if (spawn.index == 0) {
    const auto count = static_cast<std::uint32_t>(settings_.workers.size());
    if (auto begun = output_.begin_round(spawn.assignment, count, settings_.logs); !begun)
      return pass(begun.error());
    input_.begin_round(spawn.assignment, count);
  }
  const auto& plan = settings_.workers[spawn.index];
  auto worker = std::make_unique<Worker>(loop_);
  const auto local_rank = std::to_string(spawn.assignment.local_rank_offset.value + spawn.index);
  std::string folder;
  if (settings_.logs) {
    auto made = settings_.logs->worker(spawn.assignment.attempt, local_rank);
    if (!made) return pass(made.error());
    folder = *made + "/";
  }
  worker->error_file = error_file_for(spawn, folder);
  auto streams = WorkerStreams::open(loop_, output_, spawn.index, plan.out, plan.err, folder);
  if (!streams) return pass(streams.error());
  worker->streams = std::move(*streams);
  auto input = input_.open({spawn.assignment.rank_offset.value + spawn.index});
  if (!input) return pass(input.error());
  worker->input = std::move(*input);

  const auto beacon = beacons_.prepare(spawn.index);
  command.path = plan.path;
  command.argv = plan.argv;
  command.environment = worker_environment(settings_.environment, spawn.assignment, spawn.index,
                                           {.error_file = worker->error_file,
                                            .interface = interface_,
                                            .beacon = beacon,
                                            .python_folder = beacons_.python_folder()});
  if (worker->input) command.in = worker->input.get();
  command.out = worker->streams.out();
  command.err = worker->streams.err();
  command.signals = keeper_.user_signals;
  command.open_files = settings_.open_files;
  command.lease_ends = &keeper_.page.ends();
  if (cgroup_) command.cgroup = cgroup_->descriptor();
  return worker;
}

/// Empty: it gets none.
std::string Agent::error_file_for(const WorkerGroup::Spawn& spawn, const std::string& log_folder) {
  if (!settings_.error_files) return {};
  if (!log_folder.empty()) return log_folder + "error.json";
  const auto folder = beacons_.folder();
  return folder.empty()
             ? folder
             : fmt::format("{}/error_{}_{}.json", folder, spawn.assignment.attempt, spawn.index);
}

void Agent::act(const WorkerGroup::Spawn& spawn) {
  assignment_ = spawn.assignment;
  if (spawn.index == 0) {
    asked_.clear();
    passed_on_.clear();
    cgroup_.reset();
    if (auto made = posix::WorkersCgroup::make(assignment_.round.number))
      cgroup_.emplace(std::move(*made));
  }
  posix::Command command;
  auto worker = prepare(spawn, command);
  if (!worker) {
    // What the user can mend, unless it worked before.
    const bool user_error =
        worker.error().code == Errc::InvalidArgument && spawn.assignment.attempt == 0;
    feed(WorkerGroup::NotSpawned{spawn.index, worker.error().message, user_error});
    return;
  }
  auto process = posix::Process::spawn(command);
  (*worker)->streams.close_child_ends();
  (*worker)->input.reset();
  if (!process && process.error().step == posix::SpawnError::Step::LeaseEnded) {
    feed(WorkerGroup::LeaseEnded{process.error().message});
    return;
  }
  if (!process) {
    const auto& error = process.error();
    const bool user_error = error.step == posix::SpawnError::Step::Exec && error.error != ENOMEM &&
                            error.error != EMFILE;
    feed(WorkerGroup::NotSpawned{spawn.index, error.message, user_error});
    return;
  }
  (*worker)->process = std::move(*process);
  workers_[spawn.index] = std::move(*worker);
  logger_.debug("worker started rank={} pid={} attempt={}",
                assignment_.rank_offset.value + spawn.index, workers_[spawn.index]->process->pid(),
                assignment_.attempt);
  watch_worker(spawn.index);
  if (spawn.index == 0) watch_beacons();
  feed(WorkerGroup::Spawned{spawn.index});
}

void Agent::act(const WorkerGroup::Signal& signal) {
  if (!workers_[signal.index]) return;
  auto& process = *workers_[signal.index]->process;
  if (settings_.stopping.signals_groups) {
    process.signal_group(signal.signal);
  } else {
    process.signal(signal.signal);
  }
}

/// The main processes of workers that run, and our own command: they are no part of what the
/// workers started.
posix::Bystanders Agent::main_processes() const {
  posix::Bystanders running;
  for (const auto& worker : workers_) {
    if (worker && !worker->process->ended()) running.insert(worker->process->pid());
  }
  if (preempt_ && preempt_->pid()) running.insert(*preempt_->pid());
  return running;
}

void Agent::act(const WorkerGroup::SignalTree& signal) {
  if (preempt_ && signal.of_all) preempt_->pause();  // The tree must become empty.
  const bool asks = signal.signal == SIGTERM;
  const auto running = main_processes();
  auto passed_over = asks ? asked_ : std::set<int>();
  if (signal.of_all) passed_over.insert(running.begin(), running.end());
  const auto signalled = posix::signal_descendants(
      signal.signal, signal.of_all ? posix::Bystanders() : running, passed_over);
  if (!signalled.empty()) {
    logger_.info("{} {} that the workers {}", asks ? "asking" : "killing",
                 count_of(signalled.size(), "process"),
                 signal.of_all && !running.empty() ? "started" : "left");
  }
  if (asks) asked_.insert(signalled.begin(), signalled.end());
  reap();
}

void Agent::act(const WorkerGroup::KillTree&) {
  if (preempt_) preempt_->pause();
  if (cgroup_) cgroup_->kill();
  // Then those whom we can reach whatever /proc and our descriptors say.
  for (const auto& worker : workers_) {
    if (worker) worker->process->signal(SIGKILL);
  }
  const auto count = posix::signal_descendants(SIGKILL).size();
  if (!asked_.empty() && count > 0) {
    logger_.info("killing {} that the workers left: their time is over",
                 count_of(count, "process"));
    asked_.clear();
  }
  reap();
}

void Agent::watch_worker(std::uint32_t index) {
  auto& worker = *workers_[index];
  auto copy = posix::duplicate(worker.process->watch());
  if (!copy) return;  // SIGCHLD tells as well.
  worker.watch.assign(copy->release());
  worker.watch.async_wait(asio::posix::stream_descriptor::wait_read,
                          life_.guard([this](const boost::system::error_code& error) {
                            if (!error) reap();
                          }));
}

/// Reaps whatever has ended: workers, and orphans that fell to us. A child that we don't know is an
/// orphan.
void Agent::reap() {
  while (const int pid = posix::ended_child()) {
    const auto worker =
        std::find_if(workers_.begin(), workers_.end(), [pid](const auto& candidate) {
          return candidate && candidate->process->pid() == pid && !candidate->process->ended();
        });
    if (preempt_ && preempt_->pid() == pid) {
      preempt_->ended();
    } else if (worker == workers_.end()) {
      posix::reap_orphan(pid);
    } else {
      worker_ended(static_cast<std::uint32_t>(worker - workers_.begin()));
    }
  }
  if (!posix::has_children()) feed(WorkerGroup::TreeEmptied{});
}

void Agent::worker_ended(std::uint32_t index) {
  const auto now = posix::wall_now();
  auto& worker = *workers_[index];
  const auto status = worker.process->reap();
  if (!status) return;
  boost::system::error_code ignored;
  (void)worker.watch.close(ignored);
  worker.streams.drain();
  if (file_timer_) file_timer_->forget(worker.process->pid());
  fence_if_over();
  logger_.debug("worker ended rank={} {}", assignment_.rank_offset.value + index,
                describe(*status));
  (void)hear_beacon(index);  // It may have left since it has saved.
  const bool has_failed = !status->success() || worker.is_overdue;
  feed(WorkerGroup::Exited{
      index, *status, has_failed ? examine(index, *status, now) : WorkerFailure{}, has_failed});
}

WorkerFailure Agent::examine(std::uint32_t index, const ExitStatus& status, std::int64_t ended_at) {
  const auto& worker = *workers_[index];
  Observed observed{
      .pid = worker.process->pid(), .status = status, .has_peers = assignment_.world_size > 1};
  observed.ended_at = ended_at;
  observed.was_passed_on = passed_on_.contains(status.signal);
  if (const auto room = posix::room_at("/dev/shm"))
    observed.shared_memory = {room->size, room->free};
  observed.stderr_lines = worker.streams.last_err_lines();
  observed.log_file = worker.streams.err_file();
  observed.expired_timer = worker.expired_timer;
  if (!worker.error_file.empty()) {
    auto recorded = recorded_error(worker.error_file);
    if (!recorded.complaint.empty()) {
      logger_.warn("the error file {} makes no sense: {}", printable(worker.error_file),
                   recorded.complaint);
    }
    observed.recorded = std::move(recorded.text);
    error_files_[worker.process->pid()] = worker.error_file;
  }
  if (oom_ && status.signal == SIGKILL) {
    observed.out_of_memory = oom_->explain(worker.process->pid());
  }
  auto failure = assess(std::move(observed));
  if (auto said = beacons_.heard(index)) {
    if (said->step > 0) failure.step = said->step;
    failure.phase = std::move(said->phase);
  }
  return failure;
}

int Agent::pid_of(const WorkerFailure& failure) const {
  const auto index = failure.local_rank.value - assignment_.local_rank_offset.value;
  const bool runs = failure.cause != Cause::LostNode && index < workers_.size() && workers_[index];
  return runs ? workers_[index]->process->pid() : 0;
}

void Agent::announce_drain() {
  const auto own = preempt_ ? preempt_->pid() : std::nullopt;
  const auto left = own ? posix::descendants({*own}).size() : posix::descendants().size();
  // The tree must become empty, and our own command's place is in it as well.
  if (preempt_) preempt_->pause();
  if (left == 0) return;
  logger_.info("waiting up to {} s for {} that the workers left",
               std::chrono::duration<double>(settings_.stopping.drain).count(),
               count_of(left, "process"));
}

}  // namespace muster::agent

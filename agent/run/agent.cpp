#include "agent/run/agent.hpp"

#include "agent/core/evidence.hpp"
#include "agent/run/error_file.hpp"
#include "base/assert.hpp"
#include "base/posix/fork.hpp"
#include "base/posix/process_tree.hpp"
#include "base/posix/socket.hpp"
#include "base/posix/stream.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

namespace muster::agent {
namespace asio = boost::asio;
namespace {

constexpr Duration kFlushPatience = std::chrono::seconds(5);
/// When the keeper is dead we should be gone soon.
constexpr Duration kFaultPatience = std::chrono::milliseconds(100);
constexpr Duration kLastSweepPatience = std::chrono::seconds(10);

/// The signals by which a user ends a job; the others are for the workers.
bool ends_the_job(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

std::string sender_text(const posix::ReceivedSignal& signal) {
  if (signal.from_terminal) return "the terminal";
  if (signal.sender == 0) return "the system";
  const auto name = posix::process_name(signal.sender);
  return "process " + std::to_string(signal.sender) + (name.empty() ? "" : " (" + name + ")");
}

posix::SignalSource open_signals(const KeeperLink& keeper) {
  auto numbers = user_signals(keeper.user_signals);
  numbers.push_back(SIGCHLD);
  auto source = posix::SignalSource::open(numbers);
  MUSTER_ASSERT(source.has_value());
  return std::move(*source);
}

}  // namespace

/// A worker of the running round.
struct Agent::Worker {
  explicit Worker(asio::io_context& loop) : watch(loop) {}

  std::optional<posix::Process> process;
  asio::posix::stream_descriptor watch;  // A duplicate of its pidfd.
  WorkerStreams streams;
  std::string error_file;
};

Agent::Agent(asio::io_context& loop, AgentSettings settings, const KeeperLink& keeper,
             rendezvous::Attendance& attendance, Logger& logger)
    : loop_(loop),
      settings_(std::move(settings)),
      keeper_(keeper),
      attendance_(attendance),
      logger_(logger),
      group_({.workers = static_cast<std::uint32_t>(settings_.workers.size()),
              .grace = settings_.grace}),
      signals_(open_signals(keeper)),
      signal_wait_(loop),
      keeper_wait_(loop),
      timer_(loop),
      out_(loop, 1, "stdout", logger),
      err_(loop, 2, "stderr", logger),
      err_is_terminal_(posix::is_terminal(2)) {
  workers_.resize(settings_.workers.size());
  reserved_ = std::move(settings_.first_store);
  // A log line that waits for whoever should read stderr would hold up the loop.
  write_log_through(logger_, [this](std::string line) { log_through_console(std::move(line)); });
}

Agent::~Agent() { write_log_through(logger_, {}); }

Result<Verdict> Agent::run() {
  auto store = reserve_store();
  if (!store) return pass(store.error());
  for (const auto& [descriptor, fd] : {std::pair{&signal_wait_, signals_.descriptor()},
                                       std::pair{&keeper_wait_, keeper_.pidfd.get()}}) {
    auto copy = posix::duplicate(fd);
    if (!copy) return pass(copy.error());
    descriptor->assign(copy->release());
  }
  watch_signals();
  watch_keeper();
  attendance_.on_order([this](const Order& order) { obey(order); });
  attendance_.report(Hello{.slots = static_cast<std::uint32_t>(settings_.workers.size()),
                           .role = settings_.environment.role,
                           .store = *store});
  loop_.run();

  attendance_.on_order(nullptr);
  // What survives SIGKILL (a verdict after Stuck) is the keeper's to wait for.
  if (fault_) (void)posix::end_descendants(kLastSweepPatience);
  const auto patience = fault_ ? kFaultPatience : kFlushPatience;
  out_.flush(patience);
  err_.flush(patience);
  if (fault_) return pass(*fault_);
  MUSTER_ASSERT(verdict_.has_value());
  return std::move(*verdict_);
}

void Agent::feed(const WorkerGroup::Event& event) {
  events_.push_back(event);
  if (feeding_) return;
  feeding_ = true;
  while (!events_.empty()) {
    const auto next = std::move(events_.front());
    events_.pop_front();
    for (const auto& action : group_.step(std::chrono::steady_clock::now(), next)) {
      std::visit([this](const auto& what) { act(what); }, action);
    }
  }
  feeding_ = false;
  arm_timer();
}

void Agent::arm_timer() {
  const auto deadline = group_.next_deadline();
  if (!deadline) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(*deadline);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) feed(WorkerGroup::Ticked{});
  });
}

void Agent::act(const WorkerGroup::HostStore& host) {
  assignment_ = host.assignment;
  if (!settings_.environment.agent_hosts_store) {
    // Rank 0 hosts it. Our socket stays bound, not listening, so that nobody else is given the port
    // meanwhile.
    feed(WorkerGroup::Hosted{});
    return;
  }
  auto server = store::Server::start(loop_.get_executor(), std::move(reserved_),
                                     settings_.store_options, logger_);
  if (!server) {
    feed(WorkerGroup::NotHosted{server.error().message});
    return;
  }
  store_ = std::move(*server);
  feed(WorkerGroup::Hosted{});
}

void Agent::act(const WorkerGroup::Spawn& spawn) {
  assignment_ = spawn.assignment;
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
  feed(WorkerGroup::Spawned{spawn.index});
}

void Agent::act(const WorkerGroup::Signal& signal) {
  if (workers_[signal.index]) workers_[signal.index]->process->signal(signal.signal);
}

void Agent::act(const WorkerGroup::KillTree&) {
  // First those whom we can reach whatever /proc and our descriptors say.
  for (const auto& worker : workers_) {
    if (worker) worker->process->signal(SIGKILL);
  }
  const auto count = posix::signal_descendants(SIGKILL);
  if (drain_announced_ && count > 0) {
    logger_.info("killing {} processes that the workers left: their time is over", count);
    drain_announced_ = false;
  }
  reap();
}

void Agent::act(const WorkerGroup::Send& send) {
  if (const auto* failed = std::get_if<Failed>(&send.report)) {
    const auto& failure = failed->failure;
    logger_.warn("worker failed rank={} {}{}{}", failure.rank.value,
                 failure.status ? describe(*failure.status) : "could not be started",
                 failure.detail.empty() ? "" : ": ", failure.detail);
  }
  if (std::holds_alternative<Succeeded>(send.report) && posix::has_children()) {
    logger_.info(
        "waiting up to {} s for {} processes that the workers left",
        std::chrono::duration_cast<std::chrono::seconds>(WorkerGroup::kDrainPatience).count(),
        posix::descendants().size());
    drain_announced_ = true;
  }
  attendance_.report(send.report);
}

void Agent::act(const WorkerGroup::EndRound& end) {
  for (auto& worker : workers_) {
    if (!worker) continue;
    worker->streams.finish();
    worker.reset();
  }
  store_.reset();
  reserved_.reset();
  auto next = reserve_store();
  if (!next) {
    fault_ = next.error();
    loop_.stop();
    return;
  }
  attendance_.report(Empty{end.round, end.victims, *next});
}

void Agent::act(const WorkerGroup::GiveUp& give_up) {
  const auto pids = posix::descendants();
  if (pids.empty()) {
    logger_.error("workers stuck: some process survives SIGKILL, and /proc does not show which");
  } else {
    logger_.error("workers stuck: {} processes survive SIGKILL", pids.size());
  }
  attendance_.report(Stuck{give_up.round, pids});
}

void Agent::obey(const Order& order) {
  if (const auto* assignment = std::get_if<Assignment>(&order)) {
    if (assignment->attempt > 0) {
      logger_.warn("restarting attempt={} restarts={}/{}", assignment->attempt,
                   assignment->restarts, assignment->max_restarts);
    }
    if (!oom_) oom_.emplace();
    oom_->begin_round();
    feed(WorkerGroup::Assigned{*assignment});
  } else if (const auto* stop = std::get_if<Stop>(&order)) {
    logger_.info("stopping round={} reason=\"{}\" signal={} grace={}s", stop->round.number,
                 stop->reason, signal_name(stop->signal),
                 std::chrono::duration<double>(settings_.grace).count());
    feed(WorkerGroup::StopOrdered{*stop});
  } else {
    verdict_ = std::get<Verdict>(order);
    loop_.stop();
  }
}

void Agent::watch_signals() {
  signal_wait_.async_wait(asio::posix::stream_descriptor::wait_read,
                          [this](const boost::system::error_code& error) {
                            if (error) return;
                            while (const auto signal = signals_.next()) on_signal(*signal);
                            watch_signals();
                          });
}

void Agent::on_signal(const posix::ReceivedSignal& signal) {
  if (signal.number == SIGCHLD) {
    reap();
    return;
  }
  if (!ends_the_job(signal.number)) {
    logger_.info("passing {} from {} on to the workers", signal_name(signal.number),
                 sender_text(signal));
    feed(WorkerGroup::SignalPassed{signal.number});
    return;
  }
  if (last_signal_ == SIGINT && signal.number == SIGINT && signal.from_terminal) {
    logger_.warn("second Ctrl-C: killing the workers");
    feed(WorkerGroup::Hurried{});
    return;
  }
  logger_.warn("got {} from {}{}", signal_name(signal.number), sender_text(signal),
               last_signal_ == 0 ? "" : "; the workers are stopping already");
  last_signal_ = signal.number;
  attendance_.report(Leaving{signal.number});
}

void Agent::watch_keeper() {
  keeper_wait_.async_wait(
      asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& error) {
        if (error) return;
        keeper_.page.end();
        fault_ = Error{Errc::Internal, "the keeper process was killed; the workers were ended"};
        (void)posix::end_descendants(kLastSweepPatience);
        loop_.stop();
      });
}

void Agent::watch_worker(std::uint32_t index) {
  auto& worker = *workers_[index];
  auto copy = posix::duplicate(worker.process->watch());
  if (!copy) return;  // SIGCHLD tells as well.
  worker.watch.assign(copy->release());
  worker.watch.async_wait(asio::posix::stream_descriptor::wait_read,
                          [this](const boost::system::error_code& error) {
                            if (!error) reap();
                          });
}

/// Reaps whatever has ended: workers, and orphans that fell to us. A child that we don't know is an
/// orphan.
void Agent::reap() {
  while (const int pid = posix::ended_child()) {
    const auto worker =
        std::find_if(workers_.begin(), workers_.end(), [pid](const auto& candidate) {
          return candidate && candidate->process->pid() == pid && !candidate->process->ended();
        });
    if (worker == workers_.end()) {
      posix::reap_orphan(pid);
    } else {
      worker_ended(static_cast<std::uint32_t>(worker - workers_.begin()));
    }
  }
  if (!posix::has_children()) feed(WorkerGroup::TreeEmptied{});
}

void Agent::worker_ended(std::uint32_t index) {
  auto& worker = *workers_[index];
  const auto status = worker.process->reap();
  if (!status) return;
  boost::system::error_code ignored;
  (void)worker.watch.close(ignored);
  worker.streams.drain();
  logger_.debug("worker ended rank={} {}", assignment_.rank_offset.value + index,
                describe(*status));
  feed(WorkerGroup::Exited{index, *status,
                           status->success() ? WorkerFailure{} : examine(index, *status)});
}

WorkerFailure Agent::examine(std::uint32_t index, const ExitStatus& status) {
  const auto& worker = *workers_[index];
  Observed observed{
      .pid = worker.process->pid(), .status = status, .has_peers = assignment_.world_size > 1};
  observed.stderr_lines = worker.streams.last_err_lines();
  observed.log_file = worker.streams.err_file();
  if (!worker.error_file.empty()) observed.recorded = recorded_error(worker.error_file);
  if (oom_ && status.signal == SIGKILL) {
    observed.out_of_memory = oom_->explain(worker.process->pid());
  }
  return assess(std::move(observed));
}

void Agent::log_through_console(std::string line) {
  if (err_.congested()) {
    ++lost_lines_;
    return;
  }
  if (const auto lost = std::exchange(lost_lines_, 0); lost > 0) {
    err_.write("muster: " + std::to_string(lost) +
               " lines of the log were lost: nobody read them\n");
  }
  err_.write(std::move(line));
}

Result<Endpoint> Agent::reserve_store() {
  if (!reserved_) {
    auto bound = posix::bind_tcp(settings_.store);
    if (!bound) return pass(bound.error());
    reserved_ = std::move(*bound);
  }
  auto endpoint = posix::to_endpoint(posix::local_address(reserved_.get()));
  return endpoint;
}

/// Opens the streams of a worker and fills its command in.
Result<std::unique_ptr<Agent::Worker>> Agent::prepare(const WorkerGroup::Spawn& spawn,
                                                      posix::Command& command) {
  const auto& plan = settings_.workers[spawn.index];
  auto worker = std::make_unique<Worker>(loop_);
  const auto local_rank = std::to_string(spawn.assignment.local_rank_offset.value + spawn.index);
  std::string folder;
  if (settings_.logs) {
    auto made = settings_.logs->worker(spawn.assignment.attempt, local_rank);
    if (!made) return pass(made.error());
    folder = *made + "/";
    if (settings_.error_files) worker->error_file = folder + "error.json";
  }
  const StreamContext context{loop_, logger_, out_, err_, err_is_terminal_};
  const auto prefix = "[" + settings_.environment.role + local_rank + "]:";
  auto streams = WorkerStreams::open(context, plan.out, plan.err, folder, prefix);
  if (!streams) return pass(streams.error());
  worker->streams = std::move(*streams);

  command.path = plan.path;
  command.argv = plan.argv;
  command.environment =
      worker_environment(settings_.environment, spawn.assignment, spawn.index, worker->error_file);
  command.out = worker->streams.out();
  command.err = worker->streams.err();
  command.signals = keeper_.user_signals;
  command.open_files = settings_.open_files;
  command.lease_ends = &keeper_.page.ends();
  return worker;
}

}  // namespace muster::agent

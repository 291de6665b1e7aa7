#include "agent/run/agent.hpp"

#include "agent/core/evidence.hpp"
#include "agent/run/error_file.hpp"
#include "base/assert.hpp"
#include "base/posix/boot_clock.hpp"
#include "base/posix/fork.hpp"
#include "base/posix/interfaces.hpp"
#include "base/posix/process_tree.hpp"
#include "base/posix/socket.hpp"
#include "base/posix/stream.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cmath>
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
              .grace = settings_.grace,
              .preempt_signal = settings_.preempt.signal}),
      store_port_({.at = settings_.store,
                   .range = settings_.store_ports,
                   .is_agents = settings_.environment.agent_hosts_store},
                  std::move(settings_.first_store)),
      signal_wait_(loop),
      keeper_wait_(loop),
      timer_(loop),
      out_(loop, 1, "stdout", logger),
      err_(loop, 2, "stderr", logger),
      err_is_terminal_(posix::is_terminal(2)) {
  workers_.resize(settings_.workers.size());
  // A log line that waits for whoever should read stderr would hold up the loop.
  write_log_through(logger_, [this](std::string line) { log_through_console(std::move(line)); });
}

Agent::~Agent() { write_log_through(logger_, {}); }

Result<Outcome> Agent::run() {
  auto store = store_port_.reserve();
  if (!store) return pass(store.error());
  Hello hello;  // What else belongs to it is the attendance's to know.
  hello.slots = static_cast<std::uint32_t>(settings_.workers.size());
  hello.role = settings_.environment.role;
  hello.store = *store;
  if (attendance_.is_leased()) {
    auto addresses = posix::local_addresses();
    if (!addresses) return pass(addresses.error());
    hello.addresses = std::move(*addresses);
  } else {
    keeper_.page.renew_for_ever();
  }
  auto numbers = user_signals(keeper_.user_signals);
  numbers.push_back(SIGCHLD);
  auto signals = posix::SignalSource::open(numbers);
  if (!signals) return pass(signals.error());
  signals_ = std::move(*signals);
  for (const auto& [descriptor, fd] : {std::pair{&signal_wait_, signals_->descriptor()},
                                       std::pair{&keeper_wait_, keeper_.pidfd.get()}}) {
    auto copy = posix::duplicate(fd);
    if (!copy) return pass(copy.error());
    descriptor->assign(copy->release());
  }
  watch_signals();
  watch_keeper();
  if (!settings_.preempt.command.empty()) {
    preempt_.emplace(
        loop_,
        PreemptWatch::Settings{.command = settings_.preempt.command,
                               .environment = settings_.environment.base,
                               .signals = keeper_.user_signals},
        [this](const std::string& reason) { notice(reason); }, logger_);
  }
  attendance_.attend(
      {.on_order = [this](const Order& order) { obey(order); },
       .on_fence = [this](const std::string& reason) { on_fence(reason); },
       .on_half_lease = [this] { feed(WorkerGroup::LeaseHalfOver{}); },
       .on_giving_up =
           [this](int exit_code, const std::string& message) {
             leave({.verdict = std::nullopt, .exit_code = exit_code, .message = message});
           }});
  attendance_.report(std::move(hello));
  loop_.run();

  attendance_.attend({});
  knocker_.reset();
  if (preempt_) preempt_->pause();
  end_tree();
  const auto patience = fault_ ? kFaultPatience : kFlushPatience;
  out_.flush(patience);
  err_.flush(patience);
  if (fault_) return pass(*fault_);
  MUSTER_ASSERT(outcome_.has_value());
  return std::move(*outcome_);
}

/// Sees to it that nothing is left when we leave. Nobody says farewell for a tree that is not
/// empty: then the lease decides.
void Agent::end_tree() {
  posix::Swept swept{.is_empty = !posix::has_children(), .left = {}};
  // What survived SIGKILL for long has been reported, and is the keeper's to wait for.
  if (!swept.is_empty && !is_stuck_) swept = posix::end_descendants(kLastSweepPatience);
  if (!swept.is_empty) {
    if (!is_stuck_) logger_.error("{}", posix::describe(swept));
    (void)keeper_.farewell.write({});
  } else if (keeper_is_dead_) {
    attendance_.say_farewell("its keeper was killed");
  }
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
  timer_.async_wait(life_.guard([this](const boost::system::error_code& error) {
    if (!error) feed(WorkerGroup::Ticked{});
  }));
}

void Agent::act(const WorkerGroup::HostStore& host) {
  assignment_ = host.assignment;
  if (!settings_.environment.agent_hosts_store) {
    // Rank 0 hosts it. Our socket stays bound, not listening, so that nobody else is given the port
    // meanwhile.
    feed(WorkerGroup::Hosted{});
    return;
  }
  auto options = settings_.store_options;
  options.door = door_for(host.assignment);
  auto server =
      store::Server::start(loop_.get_executor(), store_port_.take(), std::move(options), logger_);
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
  feed(WorkerGroup::Spawned{spawn.index});
}

void Agent::act(const WorkerGroup::Signal& signal) {
  if (workers_[signal.index]) workers_[signal.index]->process->signal(signal.signal);
}

void Agent::act(const WorkerGroup::KillTree&) {
  if (preempt_) preempt_->pause();
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
                 failure.detail.empty() ? "" : ": ", printable(failure.detail));
  }
  if (const auto* unreachable = std::get_if<Unreachable>(&send.report))
    logger_.warn("the store of the master can't be reached: {}", unreachable->detail);
  if (const auto* saving = std::get_if<Saving>(&send.report))
    logger_.info("saving before this round ends workers={}", saving->left);
  if (std::holds_alternative<Succeeded>(send.report) && posix::has_children()) {
    announce_drain();
  }
  attendance_.report(send.report);
}

void Agent::announce_drain() {
  const auto own = preempt_ ? preempt_->pid() : std::nullopt;
  const auto left = own ? posix::descendants({*own}).size() : posix::descendants().size();
  // The tree must become empty, and our own command's place is in it as well.
  if (preempt_) preempt_->pause();
  if (left == 0) return;
  logger_.info(
      "waiting up to {} s for {} processes that the workers left",
      std::chrono::duration_cast<std::chrono::seconds>(WorkerGroup::kDrainPatience).count(), left);
  drain_announced_ = true;
}

void Agent::act(const WorkerGroup::EndRound& end) {
  for (auto& worker : workers_) {
    if (!worker) continue;
    worker->streams.finish();
    worker.reset();
  }
  knocker_.reset();
  is_empty_ = true;
  // Workers of other nodes may not even have begun to meet there.
  const bool others_meet = assignment_.nodes > 1 && !is_over_;
  if (!others_meet) store_.reset();
  store_port_.release();
  auto next = store_port_.reserve();
  if (!next && store_) {  // Perhaps for want of a second port.
    store_.reset();
    next = store_port_.reserve();
  }
  if (!next) {
    fault_ = next.error();
    loop_.stop();
    return;
  }
  if (preempt_) preempt_->resume();
  attendance_.report(Empty{end.round, end.victims, *next});
  if (attendance_.hosts_rendezvous() && last_signal_ != 0) {
    logger_.warn(
        "this node's workers are gone; it stays for the other nodes, since it hosts the job's "
        "rendezvous. Another signal ends that");
  }
}

void Agent::act(const WorkerGroup::GiveUp& give_up) {
  is_stuck_ = true;
  const auto pids = posix::descendants();
  if (pids.empty()) {
    logger_.error("workers stuck: some process survives SIGKILL, and /proc does not show which");
  } else {
    logger_.error("workers stuck: {} processes survive SIGKILL", pids.size());
  }
  attendance_.report(Stuck{give_up.round, pids});
}

void Agent::act(const WorkerGroup::Knock& knock) {
  if (!settings_.environment.agent_hosts_store) {
    // The store is PyTorch's own, of the worker with rank 0: it knows no knocking, nor a door.
    feed(WorkerGroup::KnockHeard{});
    return;
  }
  knocker_ = std::make_unique<Knocker>(
      loop_, knock.assignment.master, knock.assignment.secret, attendance_.local_address(),
      Knocker::Handlers{.on_heard =
                            [this] {
                              knocker_.reset();
                              feed(WorkerGroup::KnockHeard{});
                            },
                        .on_failed =
                            [this](const std::string& detail) {
                              logger_.debug("{}", detail);
                              feed(WorkerGroup::KnockFailed{detail});
                            }});
}

void Agent::act(const WorkerGroup::StopKnocking&) { knocker_.reset(); }

void Agent::act(const WorkerGroup::TellWorkers& tell) {
  const bool running_out = tell.word == WorkerGroup::TellWorkers::Word::LeaseRunningOut;
  logger_.debug("telling the workers word={}",
                running_out ? "lease-running-out" : "checkpoint-now");
}

void Agent::obey(const Order& order) {
  std::visit([this](const auto& what) { obey(what); }, order);
}

void Agent::obey(const Assignment& assignment) {
  if (assignment.attempt > 0) {
    logger_.warn("restarting attempt={} restarts={}/{}", assignment.attempt, assignment.restarts,
                 assignment.max_restarts);
  }
  if (assignment.nodes > 1) {
    logger_.info("round={} node_rank={}/{} world_size={} master={}", assignment.round.number,
                 assignment.node_rank.value, assignment.nodes, assignment.world_size,
                 printable(to_string(assignment.master)));
  }
  if (is_empty_) {
    is_empty_ = is_over_ = false;
    store_.reset();
  }
  if (!oom_) oom_.emplace();
  oom_->begin_round();
  interface_ = interface_for(assignment);
  feed(WorkerGroup::Assigned{assignment});
}

void Agent::obey(const Stop& stop) {
  logger_.info("stopping round={} reason=\"{}\" signal={} grace={}s", stop.round.number,
               printable(stop.reason), signal_name(stop.signal),
               std::chrono::duration<double>(settings_.grace).count());
  is_over_ = true;
  feed(WorkerGroup::StopOrdered{stop});
  if (is_empty_) store_.reset();
}

void Agent::obey(const Prepare& prepare) {
  const auto left = std::chrono::duration<double>(prepare.left).count();
  logger_.warn(
      "a machine of the job will be taken away: the workers should save reason=\"{}\" left={}",
      printable(prepare.reason), left > 0 ? std::to_string(std::lround(left)) + "s" : "unknown");
  feed(WorkerGroup::PrepareOrdered{prepare});
}

void Agent::obey(const MasterUp& up) { feed(WorkerGroup::MasterIsUp{up.round}); }

void Agent::obey(const Verdict& verdict) {
  leave({.verdict = verdict, .exit_code = verdict.exit_code, .message = {}});
}

void Agent::leave(Outcome outcome) {
  if (!outcome_) outcome_ = std::move(outcome);
  loop_.stop();
}

void Agent::on_fence(const std::string& reason) {
  is_over_ = true;
  feed(WorkerGroup::LeaseEnded{reason});
  if (is_empty_) store_.reset();
}

/// Who was killed since the lease is over did not fail. The keeper kills by the page, so we may
/// hear of the deaths before our own timer tells us why.
void Agent::fence_if_over() {
  const auto ends = keeper_.page.lease_ends();
  if (ends && posix::boot_now() >= *ends) on_fence("the lease is over");
}

/// For the libraries that would else guess: the interface of this node's route to the others. Empty
/// where there are none, or where it is a route within the machine.
std::string Agent::interface_for(const Assignment& assignment) const {
  if (assignment.nodes < 2) return {};
  // The way to the master is the workers' own. That to the rendezvous may be another, or loopback.
  for (const auto& address :
       {posix::source_address(assignment.master), attendance_.local_address()}) {
    auto name = posix::interface_of(address);
    if (!name.empty() && name != "lo") return name;
  }
  return {};
}

/// Who may come to the store of a round (protocol.md 7).
store::Door Agent::door_for(const Assignment& assignment) const {
  auto door = settings_.store_options.door;
  door.is_open = !attendance_.is_leased() && settings_.store_allow.empty();
  door.allowed = settings_.store_allow;
  door.secret = assignment.secret;
  auto admitted = assignment.admitted;
  if (!door.is_open) {
    auto own = posix::local_addresses();
    if (own) admitted.insert(admitted.end(), own->begin(), own->end());
  }
  for (const auto& text : admitted) {
    if (const auto address = store::parse_address(text)) door.admitted.insert(*address);
  }
  return door;
}

void Agent::watch_signals() {
  signal_wait_.async_wait(asio::posix::stream_descriptor::wait_read,
                          life_.guard([this](const boost::system::error_code& error) {
                            if (error) return;
                            while (const auto signal = signals_->next()) on_signal(*signal);
                            watch_signals();
                          }));
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
  if (signal.number == SIGTERM && settings_.preempt.sigterm_is_notice && !has_notice_) {
    notice(signal_name(signal.number) + " from " + sender_text(signal));
    return;
  }
  end_launcher(signal);
}

void Agent::end_launcher(const posix::ReceivedSignal& signal) {
  const bool has_workers =
      !is_stuck_ && std::any_of(workers_.begin(), workers_.end(),
                                [](const auto& worker) { return worker != nullptr; });
  const bool is_second = last_signal_ == SIGINT && signal.number == SIGINT && signal.from_terminal;
  if (is_second && has_workers) {
    logger_.warn("second Ctrl-C: killing the workers");
    feed(WorkerGroup::Hurried{});
    return;
  }
  logger_.warn("got {} from {}{}", signal_name(signal.number), sender_text(signal),
               last_signal_ == 0 || !has_workers ? "" : "; the workers are stopping already");
  last_signal_ = signal.number;
  attendance_.report(Leaving{signal.number, has_notice_ && signal.number == SIGTERM});
}

/// This machine will be taken away. The rendezvous has the whole job save, and lets this node go.
void Agent::notice(const std::string& reason) {
  if (std::exchange(has_notice_, true)) return;
  logger_.warn("preemption notice: {}", printable(reason));
  attendance_.report(Notice{reason, settings_.preempt.left});
}

void Agent::watch_keeper() {
  keeper_wait_.async_wait(asio::posix::stream_descriptor::wait_read,
                          life_.guard([this](const boost::system::error_code& error) {
                            if (error) return;
                            keeper_.page.end();
                            keeper_is_dead_ = true;
                            fault_ = Error{Errc::Internal,
                                           "the keeper process was killed; the workers were ended"};
                            loop_.stop();  // The tree is ended next.
                          }));
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
  auto& worker = *workers_[index];
  const auto status = worker.process->reap();
  if (!status) return;
  boost::system::error_code ignored;
  (void)worker.watch.close(ignored);
  worker.streams.drain();
  fence_if_over();
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
      worker_environment(settings_.environment, spawn.assignment, spawn.index,
                         {.error_file = worker->error_file, .interface = interface_});
  command.out = worker->streams.out();
  command.err = worker->streams.err();
  command.signals = keeper_.user_signals;
  command.open_files = settings_.open_files;
  command.lease_ends = &keeper_.page.ends();
  return worker;
}

}  // namespace muster::agent

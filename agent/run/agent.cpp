#include "agent/run/agent.hpp"

#include "agent/run/error_file.hpp"
#include "base/assert.hpp"
#include "base/failure_text.hpp"
#include "base/posix/boot_clock.hpp"
#include "base/posix/interfaces.hpp"
#include "base/posix/process_tree.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <utility>

namespace muster::agent {
namespace asio = boost::asio;
namespace {

constexpr const char* kSharedMemory = "/dev/shm";
/// When the keeper is dead we should be gone soon.
constexpr Duration kFaultPatience = std::chrono::milliseconds(100);
constexpr Duration kLastSweepPatience = std::chrono::seconds(10);

}  // namespace

Agent::Agent(asio::io_context& loop, AgentSettings settings, const KeeperLink& keeper,
             rendezvous::Attendance& attendance, Logger& logger)
    : loop_(loop),
      settings_(std::move(settings)),
      keeper_(keeper),
      attendance_(attendance),
      logger_(logger),
      group_({.workers = static_cast<std::uint32_t>(settings_.workers.size()),
              .grace = settings_.stopping.grace,
              .drain = settings_.stopping.drain,
              .last_deadlines = settings_.stopping.last_deadlines,
              .success_skew = settings_.stopping.success_skew,
              .preempt_signal = settings_.preempt.signal}),
      store_(loop,
             {.port = {.at = settings_.store,
                       .range = settings_.store_ports,
                       .is_agents = settings_.environment.agent_hosts_store},
              .options = settings_.store_options,
              .allow = settings_.store_allow,
              .is_open = !attendance.is_leased() && settings_.store_allow.empty(),
              .on_turned_away =
                  [this](RoundId round, const std::string& address) {
                    attendance_.report(StoreRefused{round, address});
                  }},
             std::move(settings_.first_store), logger),
      beacons_(std::move(settings_.beacons), settings_.workers.size(), keeper.private_folder,
               logger),
      signal_wait_(loop),
      keeper_wait_(loop),
      timer_(loop),
      beacon_timer_(loop),
      output_(loop, std::move(settings_.output), logger),
      input_(loop, settings_.input, logger) {
  workers_.resize(settings_.workers.size());
  if (settings_.cleans_shared_memory) shared_memory_.emplace(kSharedMemory, logger);
}

Result<Outcome> Agent::run() {
  auto store = store_.reserve();
  if (!store) return pass(store.error());
  if (auto opened = open_file_timer(); !opened) return pass(opened.error());
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
                                       std::pair{&keeper_wait_, keeper_.watch.get()}}) {
    auto copy = posix::duplicate(fd);
    if (!copy) return pass(copy.error());
    descriptor->assign(copy->release());
  }
  watch_signals();
  watch_keeper();
  if (!posix::shows_our_processes()) {
    logger_.warn(
        "/proc does not show the processes of this namespace: what workers start can't be "
        "found, and is left to itself (mount a /proc here)");
  }
  if (!settings_.preempt.command.empty()) {
    preempt_.emplace(
        loop_,
        PreemptWatch::Settings{.command = settings_.preempt.command,
                               .environment = settings_.environment.base,
                               .signals = keeper_.user_signals},
        [this](const std::string& reason) { notice(reason); }, logger_);
  }
  if (settings_.stopping.dies_with_parent) {
    parent_.emplace(loop_, keeper_.parent, [this] { on_parents_end(); });
  }
  attendance_.attend({.on_order = [this](const Order& order) { obey(order); },
                      .on_fence = [this](const std::string& reason) { on_fence(reason); },
                      .on_half_lease = [this] { feed(WorkerGroup::LeaseHalfOver{}); },
                      .on_giving_up =
                          [this](int exit_code, const std::string& message) {
                            leave({.verdict = std::nullopt,
                                   .exit_code = exit_code,
                                   .message = message,
                                   .recorded = {}});
                          }});
  attendance_.report(std::move(hello));
  loop_.run();

  attendance_.attend({});
  knocker_.reset();
  if (preempt_) preempt_->pause();
  end_tree();
  if (outcome_) {
    outcome_->survivors = std::move(survivors_);
    if (!fault_ && settings_.on_outcome) settings_.on_outcome(*outcome_);
  }
  output_.flush(fault_ ? kFaultPatience : settings_.read_patience);
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
    if (!is_stuck_) {
      logger_.error("{}", posix::describe(swept));
      survivors_ = swept.left;
    }
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
  if (const auto hosted = store_.host(host.assignment); !hosted) {
    feed(WorkerGroup::NotHosted{hosted.error().message});
    return;
  }
  feed(WorkerGroup::Hosted{});
}

void Agent::act(const WorkerGroup::Send& send) {
  auto report = send.report;
  if (auto* failed = std::get_if<Failed>(&report)) {
    auto& failure = failed->failure;
    if (!failure.status) failure.pid = pid_of(failure);
    logger_.warn("worker failed rank={} {}{}{}", failure.rank.value, how_it_failed(failure),
                 failure.detail.empty() ? "" : ": ", printable(failure.detail));
  }
  if (const auto* unreachable = std::get_if<Unreachable>(&report))
    logger_.warn("the store of the master can't be reached: {}", unreachable->detail);
  if (const auto* saving = std::get_if<Saving>(&report))
    logger_.info("saving before this round ends workers={}", saving->left);
  if (std::holds_alternative<Succeeded>(report) && posix::has_children()) {
    announce_drain();
  }
  // What the workers had reached by then.
  if (std::holds_alternative<Failed>(report) || std::holds_alternative<Stopped>(report))
    look_at_beacons();
  attendance_.report(std::move(report));
}

void Agent::act(const WorkerGroup::EndRound& end) {
  for (auto& worker : workers_) {
    if (!worker) continue;
    worker->streams.finish();
    worker.reset();
  }
  output_.end_round();
  knocker_.reset();
  cgroup_.reset();
  beacon_timer_.cancel();
  beacons_.end_round();
  if (shared_memory_) shared_memory_->end_round();
  reported_progress_.clear();
  if (file_timer_) file_timer_->clear();
  is_empty_ = true;
  // Workers of other nodes may not even have begun to meet there.
  const bool others_meet = assignment_.nodes > 1 && !is_over_;
  const auto next = store_.reserve_next(others_meet);
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
  survivors_ = posix::descendants();
  if (survivors_.empty()) {
    logger_.error("workers stuck: some process is left, and /proc does not show which");
  } else {
    logger_.error("workers stuck: SIGKILL does not end {}", count_of(survivors_.size(), "process"));
  }
  attendance_.report(Stuck{give_up.round, survivors_});
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

void Agent::obey(const Order& order) {
  std::visit([this](const auto& what) { obey(what); }, order);
}

void Agent::obey(const Assignment& assignment) {
  if (assignment.attempt > 0) {  // What was charged is worth a warning, a change of size is not.
    const auto level = assignment.restarts > 0 ? spdlog::level::warn : spdlog::level::info;
    logger_.log(level, "restarting attempt={} restarts={}/{}", assignment.attempt,
                assignment.restarts, assignment.max_restarts);
  }
  if (assignment.nodes > 1 || attendance_.is_leased()) {
    logger_.info("round={} node_rank={}/{} world_size={} master={}", assignment.round.number,
                 assignment.node_rank.value, assignment.nodes, assignment.world_size,
                 printable(to_string(assignment.master)));
  }
  if (is_empty_) {
    is_empty_ = is_over_ = false;
    store_.close();
  }
  if (!oom_) oom_.emplace();
  oom_->begin_round();
  error_files_.clear();
  interface_ = interface_for(assignment);
  feed(WorkerGroup::Assigned{assignment});
}

void Agent::obey(const Stop& stop) {
  using Tenths = std::chrono::duration<std::int64_t, std::deci>;
  const auto grace =
      std::chrono::round<Tenths>(group_.grace_from(std::chrono::steady_clock::now()));
  logger_.info("stopping round={} reason=\"{}\" signal={} grace={}s", stop.round.number,
               printable(stop.reason), signal_name(stop.signal),
               std::chrono::duration<double>(grace).count());
  is_over_ = true;
  if (stop.round == assignment_.round) tell_round_is_over();
  feed(WorkerGroup::StopOrdered{stop});
  if (is_empty_) store_.close();
}

void Agent::obey(const Prepare& prepare) {
  const auto left = std::chrono::duration<double>(prepare.left).count();
  logger_.warn(
      "a machine of the job will be taken away: the workers should save reason=\"{}\" left={}",
      printable(prepare.reason), left > 0 ? std::to_string(std::lround(left)) + "s" : "unknown");
  look_at_beacons();  // A save counts from now on.
  tell_deadline(prepare);
  feed(WorkerGroup::PrepareOrdered{prepare});
}

void Agent::obey(const MasterUp& up) { feed(WorkerGroup::MasterIsUp{up.round}); }

void Agent::obey(const Verdict& verdict) {
  Outcome outcome{
      .verdict = verdict, .exit_code = verdict.exit_code, .message = {}, .recorded = {}};
  if (const auto& cause = verdict.cause; cause && cause->node_rank == assignment_.node_rank) {
    const auto file = error_files_.find(cause->pid);
    if (file != error_files_.end())
      outcome.recorded = posix::file_tail(file->second, kMaxErrorFile);
  }
  leave(std::move(outcome));
}

void Agent::leave(Outcome outcome) {
  if (!outcome_) outcome_ = std::move(outcome);
  loop_.stop();
}

void Agent::on_fence(const std::string& reason) {
  is_over_ = true;
  feed(WorkerGroup::LeaseEnded{reason});
  if (is_empty_) store_.close();
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

}  // namespace muster::agent

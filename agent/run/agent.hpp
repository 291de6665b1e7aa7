#pragma once

#include "agent/core/worker_group.hpp"
#include "agent/run/console.hpp"
#include "agent/run/keeper.hpp"
#include "agent/run/log_folder.hpp"
#include "agent/run/oom_watch.hpp"
#include "agent/run/streams.hpp"
#include "agent/run/worker_environment.hpp"
#include "base/log/log.hpp"
#include "base/posix/process.hpp"
#include "base/posix/signals.hpp"
#include "rendezvous/client/attendance.hpp"
#include "rendezvous/store/server.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

namespace muster::agent {

/// One worker of the node: what it executes, where its output goes.
struct WorkerPlan {
  std::string path;
  std::vector<std::string> argv;
  StreamPlan out;
  StreamPlan err;
};

struct AgentSettings {
  std::vector<WorkerPlan> workers;
  EnvironmentSettings environment;
  Duration grace = std::chrono::seconds(30);
  Endpoint store;  ///< Numeric address at which to host the store; port 0: a free one each round.
  posix::Fd first_store;  ///< Bound there already, for the first round; none: the agent binds it.
  store::ServerOptions store_options;
  std::optional<LogFolder> logs;
  bool error_files = false;  ///< Workers get a TORCHELASTIC_ERROR_FILE in the log folder.
  rlimit open_files{};       ///< The user's own limit, for the workers.
};

/// Starts, watches and ends the workers of one node, as the rendezvous orders. What to do when is
/// decided by WorkerGroup; this is the edge: processes, pipes, signals, the store. Loop thread
/// only; that is the thread on which workers are forked, so it must live as long as they should.
class Agent {
 public:
  Agent(boost::asio::io_context& loop, AgentSettings settings, const KeeperLink& keeper,
        rendezvous::Attendance& attendance, Logger& logger);
  ~Agent();

  /// Reserves the store's port, says Hello, and runs the loop until the verdict. Fails where the
  /// port can't be had or our own machinery fails. When the keeper dies, or the user's signal ends
  /// the job, the tree is gone on return.
  [[nodiscard]] Result<Verdict> run();

 private:
  struct Worker;

  void feed(const WorkerGroup::Event& event);
  void arm_timer();
  void act(const WorkerGroup::HostStore& host);
  void act(const WorkerGroup::Spawn& spawn);
  void act(const WorkerGroup::Signal& signal);
  void act(const WorkerGroup::KillTree& kill);
  void act(const WorkerGroup::Send& send);
  void act(const WorkerGroup::EndRound& end);
  void act(const WorkerGroup::GiveUp& give_up);

  void obey(const Order& order);
  void watch_signals();
  void on_signal(const posix::ReceivedSignal& signal);
  void watch_keeper();
  void watch_worker(std::uint32_t index);
  void reap();
  void worker_ended(std::uint32_t index);
  WorkerFailure examine(std::uint32_t index, const ExitStatus& status);
  Result<Endpoint> reserve_store();
  void log_through_console(std::string line);
  Result<std::unique_ptr<Worker>> prepare(const WorkerGroup::Spawn& spawn, posix::Command& command);

  boost::asio::io_context& loop_;
  AgentSettings settings_;
  const KeeperLink& keeper_;
  rendezvous::Attendance& attendance_;
  Logger& logger_;

  WorkerGroup group_;
  std::deque<WorkerGroup::Event> events_;
  bool feeding_ = false;

  std::vector<std::unique_ptr<Worker>> workers_;  // By index; of the running round.
  Assignment assignment_;
  posix::Fd reserved_;  // Bound for the next round's store.
  std::unique_ptr<store::Server> store_;
  std::optional<OomWatch> oom_;

  posix::SignalSource signals_;
  boost::asio::posix::stream_descriptor signal_wait_;
  boost::asio::posix::stream_descriptor keeper_wait_;
  boost::asio::steady_timer timer_;
  Console out_;
  Console err_;
  std::size_t lost_lines_ = 0;  // Of our own log, while nobody read stderr.
  bool err_is_terminal_;
  bool drain_announced_ = false;
  int last_signal_ = 0;  // That ended the job.
  std::optional<Verdict> verdict_;
  std::optional<Error> fault_;  // Of our own.
};

}  // namespace muster::agent

#pragma once

#include "agent/core/worker_group.hpp"
#include "agent/run/beacons.hpp"
#include "agent/run/file_timer.hpp"
#include "agent/run/keeper.hpp"
#include "agent/run/knocker.hpp"
#include "agent/run/life.hpp"
#include "agent/run/log_folder.hpp"
#include "agent/run/oom_watch.hpp"
#include "agent/run/output.hpp"
#include "agent/run/parent_watch.hpp"
#include "agent/run/preempt_watch.hpp"
#include "agent/run/round_store.hpp"
#include "agent/run/streams.hpp"
#include "agent/run/worker.hpp"
#include "agent/run/worker_environment.hpp"
#include "agent/run/worker_input.hpp"
#include "base/log/log.hpp"
#include "base/posix/process_tree.hpp"
#include "base/posix/signals.hpp"
#include "base/posix/workers_cgroup.hpp"
#include "rendezvous/client/attendance.hpp"
#include "rendezvous/store/server.hpp"

#include <csignal>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
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

/// What tells that this machine will be taken away.
struct PreemptSettings {
  std::string command;             ///< Polled (PreemptWatch); empty: none.
  bool sigterm_is_notice = false;  ///< The first SIGTERM is a notice, the second ends the launcher.
  /// How long the machine is said to stay after a notice; 0: unknown.
  Duration left{};
  int signal = 0;  ///< What asks workers to save; 0: only their beacon does.
};

/// How workers are ended (WorkerGroup).
struct StopSettings {
  Duration grace = std::chrono::seconds(30);
  Duration drain = std::chrono::seconds(10);
  std::optional<WorkerGroup::LastDeadlines> last_deadlines;
  std::optional<Duration> success_skew;
  bool signals_groups = false;  ///< To a worker's process group, not to its main process alone.
  /// Signals to the launcher that are for the workers alone.
  std::set<int> forwarded = {SIGUSR1, SIGUSR2};
  bool dies_with_parent = false;  ///< Ends when the process that started the launcher does.
};

struct AgentSettings {
  std::vector<WorkerPlan> workers;
  EnvironmentSettings environment;
  StopSettings stopping;
  /// Numeric address at which to host the store. An unspecified host ("0.0.0.0", "::") stands for
  /// all addresses, and the attendance names one of them. Port 0: a free one each round.
  Endpoint store;
  std::optional<PortRange> store_ports;  ///< Where the store's port is 0.
  posix::Fd first_store;  ///< Reserved already (StorePort), for the first round; none: it is not.
  /// Who may come to the store beside the job's nodes (`--store-allow`). Where the job has one node
  /// and no lease, and none is named, everybody may.
  std::vector<store::Network> store_allow;
  PreemptSettings preempt;
  BeaconSettings beacons;
  store::ServerOptions store_options;
  OutputSettings output;
  InputPlan input;
  std::optional<LogFolder> logs;
  bool error_files = true;  ///< Workers get a TORCHELASTIC_ERROR_FILE.
  /// The named pipe of the file timer; empty: in the private folder. nullopt: there is no timer.
  std::optional<std::string> timer_file;
  rlimit open_files{};  ///< The user's own limit, for the workers.
};

/// How an agent's part in its job ended.
struct Outcome {
  std::optional<Verdict> verdict;  ///< Of the job, known everywhere.
  /// Where there is no verdict: the node was refused, has left, lost its rendezvous ...
  int exit_code = 0;
  std::string message;  ///< Why, for people.
  /// What the worker that was the verdict's cause wrote into its error file; empty: nothing, or it
  /// was on another node.
  std::string recorded;
  std::vector<int> survivors;  ///< Pids on this node that SIGKILL did not end.
};

/// Starts, watches and ends the workers of one node, as the rendezvous orders. What to do when is
/// decided by WorkerGroup; this is the edge: processes, pipes, signals, the store. Loop thread
/// only; that is the thread on which workers are forked, so it must live as long as they should.
class Agent {
 public:
  Agent(boost::asio::io_context& loop, AgentSettings settings, const KeeperLink& keeper,
        rendezvous::Attendance& attendance, Logger& logger);

  /// Reserves the store's port, says Hello, and runs the loop until the verdict, or until it is
  /// clear that there will be none for this node. Fails where the port can't be had or our own
  /// machinery fails. When the keeper dies, or the user's signal ends the job, the tree is gone on
  /// return; the loop is stopped, and may be restarted by whoever has more to do on it.
  [[nodiscard]] Result<Outcome> run();

 private:
  void end_tree();
  void feed(const WorkerGroup::Event& event);
  void arm_timer();
  void act(const WorkerGroup::HostStore& host);
  void act(const WorkerGroup::Spawn& spawn);
  void act(const WorkerGroup::Signal& signal);
  void act(const WorkerGroup::SignalTree& signal);
  void act(const WorkerGroup::KillTree& kill);
  void act(const WorkerGroup::Send& send);
  void act(const WorkerGroup::EndRound& end);
  void act(const WorkerGroup::GiveUp& give_up);
  void act(const WorkerGroup::Knock& knock);
  void act(const WorkerGroup::StopKnocking& stop);
  void act(const WorkerGroup::TellWorkers& tell);

  void obey(const Order& order);
  void obey(const Assignment& assignment);
  void obey(const Stop& stop);
  void obey(const Prepare& prepare);
  void obey(const MasterUp& up);
  void obey(const Keep&) {}  // The attendee holds it.
  void obey(const Verdict& verdict);
  void leave(Outcome outcome);
  void on_fence(const std::string& reason);
  void fence_if_over();
  std::string interface_for(const Assignment& assignment) const;
  void watch_keeper();

  // In agent_signals.cpp.
  void watch_signals();
  void on_signal(const posix::ReceivedSignal& signal);
  void end_launcher(const posix::ReceivedSignal& signal);
  void on_parents_end();
  void notice(const std::string& reason);

  // In agent_beacons.cpp.
  void watch_beacons();
  void look_at_beacons();
  std::optional<posix::BeaconPage::Said> hear_beacon(std::uint32_t index);
  void tell_deadline(const Prepare& prepare);
  void tell_round_is_over();

  // In agent_timers.cpp.
  Result<void> open_file_timer();
  void on_timer_expired(const FileTimers::Expired& expired);

  // In agent_workers.cpp, with the actions that concern one.
  Result<std::unique_ptr<Worker>> prepare(const WorkerGroup::Spawn& spawn, posix::Command& command);
  void watch_worker(std::uint32_t index);
  void reap();
  void worker_ended(std::uint32_t index);
  std::string error_file_for(const WorkerGroup::Spawn& spawn, const std::string& log_folder);
  WorkerFailure examine(std::uint32_t index, const ExitStatus& status, std::int64_t ended_at);
  int pid_of(const WorkerFailure& failure) const;
  posix::Bystanders main_processes() const;
  void announce_drain();

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
  RoundStore store_;            // Closed once the round is over on all nodes.
  bool is_empty_ = true;        // Nothing of the newest round is left here.
  bool is_over_ = false;        // It was stopped, or our lease ended.
  bool is_stuck_ = false;       // Some process of ours survives SIGKILL.
  std::vector<int> survivors_;  // Those, as far as /proc shows them.
  std::unique_ptr<Knocker> knocker_;
  std::string interface_;  // Of the running round's route between nodes; empty: none is told.
  std::optional<OomWatch> oom_;
  std::optional<posix::WorkersCgroup> cgroup_;  // Of the running round.
  Beacons beacons_;
  std::vector<WorkerProgress> reported_progress_;  // Of the running round, last.
  std::map<int, std::string> error_files_;         // By the pid of who failed, of the newest round.

  std::unique_ptr<FileTimer> file_timer_;  // None: it is off.

  std::optional<posix::SignalSource> signals_;
  boost::asio::posix::stream_descriptor signal_wait_;
  boost::asio::posix::stream_descriptor keeper_wait_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer beacon_timer_;
  Output output_;
  WorkerInput input_;
  std::set<int> passed_on_;  // Signals, to this round's workers.
  std::set<int> asked_;      // Of what the round's workers started: had their SIGTERM.
  int last_signal_ = 0;      // That ended the job.
  std::optional<TimePoint> noticed_by_signal_;
  bool has_notice_ = false;
  std::optional<PreemptWatch> preempt_;
  std::optional<ParentWatch> parent_;
  std::optional<Outcome> outcome_;
  std::optional<Error> fault_;  // Of our own.
  bool keeper_is_dead_ = false;
  Life life_;
};

}  // namespace muster::agent

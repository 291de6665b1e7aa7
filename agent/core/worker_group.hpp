#pragma once

#include "base/membership.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace muster::agent {

// clang-format off
/// The workers of one node through the rounds of a job: in which order they are started, watched, asked
/// to leave and killed. It knows workers by their index on the node, 0 .. workers - 1.
///
///   Idle     --Assigned--> Hosting where this node hosts the store, Spawning where it is alone, else Knocking
///   Hosting  --the store listens: acknowledged--> Spawning, one by one
///   Knocking --the master's store was heard--> Spawning
///   Knocking --not within 5 s of MasterUp--> Running, without workers: says so and waits for the Stop
///   Spawning --the last one spawned--> Running
///   Hosting, Spawning --the store or a worker can't be started--> Running: says so and waits for the Stop
///   Running  --a worker fails--> Running: says so and waits for the Stop
///   Running  --all exited 0--> Draining: what they left behind has a while to finish
///   Hosting, Knocking, Spawning, Running --Stop--> Stopping: each main process was asked once, and has the grace
///   Stopping --all main processes ended--> Clearing: what they left behind was asked, and has a quarter of the grace
///   Draining --Stop, or the patience is over--> Clearing
///   Stopping, Clearing --their time is over--> Killing
///   Draining, Stopping, Clearing --the user is in a hurry--> Killing
///   any but Idle --the lease ended--> Killing
///   Draining, Stopping, Clearing, Killing --the tree is empty--> Idle: the round is over
///   Killing  --10 s--> Stuck, for good
///
/// A signal goes to main processes only: loaders and loggers serve them while they save. What a worker started gets
/// SIGTERM when the worker has ended, at the latest at three quarters of the grace; where the worker exited 0 while
/// others run, after the patience for what it left behind. When the launcher itself was signalled, and a scheduler will
/// kill it (`last_deadlines`), all is killed, and given up, early enough for the verdict to be told before that.
///
/// Each Stop of the round is answered at once (Stopped): all that was seen by then is reported already.
/// A worker that ends in Stopping as it was asked to (exit 0, or by the stop signal) is a victim; one
/// that ends in another way failed by itself, and its evidence counts for the first cause. In Killing
/// all are victims, except of a lease that ended: then the node is what failed, and who dies of that is
/// not mentioned. The tree is everything that descends from a worker, its main process included.
///
/// Before a machine is taken away (Prepare) the workers are told to save, by a signal where one is set.
/// One that then leaves as asked has saved; it has neither failed nor finished. So has one whose beacon
/// tells of a checkpoint since. For those that neither get a signal nor heed their beacon nobody waits.
///
/// Pure: the same calls give the same actions.
// clang-format on
class WorkerGroup {
 public:
  /// From a signal to the launcher.
  struct LastDeadlines {
    Duration kill;     ///< Until all is killed.
    Duration give_up;  ///< Until what survives that counts as stuck.
  };
  struct Settings {
    std::uint32_t workers = 1;
    Duration grace = std::chrono::seconds(30);  ///< Between the stop signal and SIGKILL.
    /// How long what a worker left behind may run on after its exit 0.
    Duration drain = std::chrono::seconds(10);
    /// Whoever signals the launcher kills it later; nullopt: nobody does.
    std::optional<LastDeadlines> last_deadlines;
    /// How long the others may run on once one worker of the node has exited 0; nullopt: for ever.
    std::optional<Duration> success_skew;
    int preempt_signal = 0;  ///< What asks the workers to save; 0: only their beacon does.
  };

  /// How much of the grace what the workers started has from its SIGTERM to SIGKILL: one of so many
  /// parts.
  static constexpr int kTreeShare = 4;
  /// In Killing the tree is swept again this often, for what was forked during the last sweep.
  static constexpr Duration kSweepInterval = std::chrono::milliseconds(20);
  /// A process that survives SIGKILL for so long is in the kernel's hands.
  static constexpr Duration kKillPatience = std::chrono::seconds(10);
  /// Even when the launcher itself is about to be killed, SIGKILL has so long to work.
  static constexpr Duration kLeastKillPatience = std::chrono::milliseconds(500);
  /// Once the master is up, its store must answer to a knock within this time (protocol.md 4).
  static constexpr Duration kKnockPatience = std::chrono::seconds(5);

  struct Assigned {
    Assignment assignment;
  };
  struct Hosted {};  ///< The store listens.
  struct NotHosted {
    std::string message;
  };
  struct KnockHeard {};  ///< The master's store answered.
  struct KnockFailed {   ///< One knock did; the next follows by itself. Names both ends and the
                         ///< cause.
    std::string detail;
  };
  struct MasterIsUp {
    RoundId round;
  };
  struct Spawned {
    std::uint32_t index;
  };
  struct NotSpawned {
    std::uint32_t index;
    std::string message;
    bool user_error;
  };
  /// A worker's main process ended. For a failure `evidence` has all but where it stands in the
  /// job.
  struct Exited {
    std::uint32_t index;
    ExitStatus status;
    WorkerFailure evidence;
    bool has_failed = false;  ///< Also by an exit 0 that a timer of its own had made it do.
  };
  struct StopOrdered {
    Stop stop;
  };
  struct PrepareOrdered {
    Prepare prepare;
  };
  /// The node's ranks are no longer its own. To be fed before any death that may have come of it:
  /// the keeper kills as well.
  struct LeaseEnded {
    std::string reason;
  };
  struct LeaseHalfOver {};
  /// What a worker's beacon says: checkpoints written in this round, and whether it looks for
  /// requests to save. Fed before PrepareOrdered as well: what is written after that counts.
  struct BeaconHeard {
    std::uint32_t index;
    std::uint64_t saves;
    bool heeds_requests;
  };
  struct SignalPassed {
    int signal;
  };  ///< For every worker's main process, the job goes on.
  struct LauncherSignalled {};  ///< For the first time, by a signal that ends it.
  struct Hurried {};  ///< The user will wait no longer: the grace is over, now and for later Stops.
  struct TreeEmptied {};  ///< No process of the round is left.
  struct Ticked {};
  using Event =
      std::variant<Assigned, Hosted, NotHosted, KnockHeard, KnockFailed, MasterIsUp, Spawned,
                   NotSpawned, Exited, StopOrdered, PrepareOrdered, LeaseEnded, LeaseHalfOver,
                   BeaconHeard, SignalPassed, LauncherSignalled, Hurried, TreeEmptied, Ticked>;

  struct HostStore {
    Assignment assignment;
  };  ///< Answer with Hosted or NotHosted, before anything else happens.
  struct Knock {
    Assignment assignment;
  };  ///< At the master's store, again and again, until KnockHeard or StopKnocking.
  struct StopKnocking {};
  struct Spawn {
    Assignment assignment;
    std::uint32_t index;
  };  ///< Answer with Spawned or NotSpawned, before anything else happens.
  struct Signal {
    std::uint32_t index;
    int signal;
  };
  /// To what the workers started, never to them: of those that have ended, or of all. SIGTERM goes
  /// to each process once.
  struct SignalTree {
    int signal;
    bool of_all;
  };
  struct KillTree {};  ///< SIGKILL to all of it. TreeEmptied follows when it is gone.
  struct Send {
    Report report;
  };
  struct EndRound {
    RoundId round;
    std::vector<Victim> victims;
  };  ///< Close the store, report Empty.
  struct GiveUp {
    RoundId round;
  };  ///< Report Stuck with what is left of the tree.
  /// For the workers that listen to their agent: what they should know.
  struct TellWorkers {
    enum class Word { CheckpointNow, LeaseRunningOut } word;
  };
  using Action = std::variant<HostStore, Knock, StopKnocking, Spawn, Signal, SignalTree, KillTree,
                              Send, EndRound, GiveUp, TellWorkers>;

  explicit WorkerGroup(Settings settings) : settings_(settings) {}

  [[nodiscard]] std::vector<Action> step(TimePoint now, const Event& event);

  /// What a stop that began now would leave the workers until SIGKILL.
  [[nodiscard]] Duration grace_from(TimePoint now) const;

  /// When to send Ticked although nothing happens; nullopt: never.
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

 private:
  struct Idle {};
  struct Hosting {};
  struct Knocking {
    std::optional<TimePoint> ends;  // nullopt: the master is not up yet.
    std::string last;               // Why the newest knock failed.
  };
  struct Spawning {
    std::uint32_t next;
  };
  struct Running {};
  struct Draining {
    TimePoint ends;
  };
  struct Stopping {
    std::optional<TimePoint> tree_at;  // nullopt: it was asked.
    TimePoint kill_at;
    int signal;
  };
  struct Clearing {
    TimePoint kill_at;
  };
  struct Killing {
    TimePoint sweep_at;
    TimePoint stuck_at;
    bool by_lease;
  };
  struct StuckForGood {};
  using Phase = std::variant<Idle, Hosting, Knocking, Spawning, Running, Draining, Stopping,
                             Clearing, Killing, StuckForGood>;
  /// While others run: what is due for what a worker left behind that exited 0.
  struct Leftovers {
    TimePoint due;
    int signal;
  };
  enum class Worker { Absent, Alive, Succeeded, Ended };
  struct Beacon {
    bool tells_saves = false;
    std::uint64_t saves = 0;
    std::uint64_t before = 0;  // Saves, when the workers were told to save.
  };

  void on(TimePoint now, const Assigned& assigned);
  void on(TimePoint now, const Hosted& hosted);
  void on(TimePoint now, const NotHosted& failed);
  void on(TimePoint now, const KnockHeard& heard);
  void on(TimePoint now, const KnockFailed& failed);
  void on(TimePoint now, const MasterIsUp& up);
  void on(TimePoint now, const Spawned& spawned);
  void on(TimePoint now, const NotSpawned& failed);
  void on(TimePoint now, const Exited& exited);
  void on(TimePoint now, const StopOrdered& ordered);
  void on(TimePoint now, const PrepareOrdered& ordered);
  void on(TimePoint now, const LeaseEnded& ended);
  void on(TimePoint now, const LeaseHalfOver& half);
  void on(TimePoint now, const BeaconHeard& heard);
  void on(TimePoint now, const SignalPassed& passed);
  void on(TimePoint now, const LauncherSignalled& signalled);
  void on(TimePoint now, const Hurried& hurried);
  void on(TimePoint now, const TreeEmptied& emptied);
  void on(TimePoint now, const Ticked& ticked);

  void send(Report report);
  void acknowledge();
  void spawn(std::uint32_t index);
  void stop(TimePoint now, int signal);
  void clear(TimePoint now);
  void see_to_leftovers(TimePoint now);
  void see_to_skew(TimePoint now);
  [[nodiscard]] Duration tree_patience() const;
  [[nodiscard]] TimePoint kill_at(TimePoint when) const;
  [[nodiscard]] TimePoint give_up_at(TimePoint now, TimePoint when) const;
  void kill(TimePoint now, bool by_lease = false);
  void end_round();
  void give_up_knocking(const std::string& last);
  void fail_to_start(std::uint32_t index, const std::string& message, bool user_error);
  void fail(WorkerFailure failure, std::uint32_t index);
  void say_who_still_saves();
  bool has_saved(std::uint32_t index) const;
  bool is_starting() const;
  bool any_alive() const;
  bool all_succeeded() const;

  Settings settings_;
  Phase phase_;
  Assignment assignment_;
  RoundId newest_;  // The highest round named to us, in an Assignment or a Stop.
  std::vector<Worker> workers_;
  std::vector<Beacon> beacons_;
  std::vector<Victim> victims_;
  bool prepared_ = false;  // The workers of the round were told to save.
  std::optional<Leftovers> leftovers_;
  std::optional<TimePoint> skew_ends_;
  std::optional<TimePoint> launcher_signalled_at_;
  bool hurried_ = false;
  std::vector<Action> actions_;  // Of the step under way.
};

}  // namespace muster::agent

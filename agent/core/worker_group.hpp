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
///   Idle     --Assigned--> Starting: hosts the store if this node has rank 0, then spawns one by one
///   Starting --the last one spawned--> Running
///   Starting --one can't be started--> Running: says so and waits for the Stop
///   Running  --a worker fails--> Running: says so and waits for the Stop
///   Running  --all exited 0--> Draining: what they left behind has a while to finish
///   Starting, Running --Stop--> Stopping: each main process was asked once, and has the grace
///   Stopping --all main processes ended, the grace is over, or the user is in a hurry--> Killing
///   Draining --Stop, the patience is over, or the user is in a hurry--> Killing
///   Draining, Stopping, Killing --the tree is empty--> Idle: the round is over
///   Killing  --10 s--> Stuck, for good
///
/// A worker that ends in Stopping as it was asked to (exit 0, or by the stop signal) is a victim; one
/// that ends in another way failed by itself, and its evidence counts for the first cause. In Killing
/// all are victims. The tree is everything that descends from a worker, its main process included.
///
/// Pure: the same calls give the same actions.
// clang-format on
class WorkerGroup {
 public:
  struct Settings {
    std::uint32_t workers = 1;
    Duration grace = std::chrono::seconds(30);  ///< Between the stop signal and SIGKILL.
  };

  /// How long what the workers left behind may run on after they all exited 0.
  static constexpr Duration kDrainPatience = std::chrono::seconds(10);
  /// In Killing the tree is swept again this often, for what was forked during the last sweep.
  static constexpr Duration kSweepInterval = std::chrono::milliseconds(20);
  /// A process that survives SIGKILL for so long is in the kernel's hands.
  static constexpr Duration kKillPatience = std::chrono::seconds(10);

  struct Assigned {
    Assignment assignment;
  };
  struct Hosted {};  ///< The store listens.
  struct NotHosted {
    std::string message;
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
  };
  struct StopOrdered {
    Stop stop;
  };
  struct SignalPassed {
    int signal;
  };  ///< For every worker's main process, the job goes on.
  struct Hurried {};  ///< The user will wait no longer: the grace is over, now and for later Stops.
  struct TreeEmptied {};  ///< No process of the round is left.
  struct Ticked {};
  using Event = std::variant<Assigned, Hosted, NotHosted, Spawned, NotSpawned, Exited, StopOrdered,
                             SignalPassed, Hurried, TreeEmptied, Ticked>;

  struct HostStore {
    Assignment assignment;
  };  ///< Answer with Hosted or NotHosted.
  struct Spawn {
    Assignment assignment;
    std::uint32_t index;
  };  ///< Answer with Spawned or NotSpawned.
  struct Signal {
    std::uint32_t index;
    int signal;
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
  using Action = std::variant<HostStore, Spawn, Signal, KillTree, Send, EndRound, GiveUp>;

  explicit WorkerGroup(Settings settings) : settings_(settings) {}

  [[nodiscard]] std::vector<Action> step(TimePoint now, const Event& event);

  /// When to send Ticked although nothing happens; nullopt: never.
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

 private:
  struct Idle {};
  struct Starting {
    std::uint32_t next;
  };
  struct Running {};
  struct Draining {
    TimePoint ends;
  };
  struct Stopping {
    TimePoint kill_at;
    int signal;
  };
  struct Killing {
    TimePoint sweep_at;
    TimePoint stuck_at;
  };
  struct StuckForGood {};
  using Phase = std::variant<Idle, Starting, Running, Draining, Stopping, Killing, StuckForGood>;
  enum class Worker { Absent, Alive, Succeeded, Ended };

  void on(TimePoint now, const Assigned& assigned);
  void on(TimePoint now, const Hosted& hosted);
  void on(TimePoint now, const NotHosted& failed);
  void on(TimePoint now, const Spawned& spawned);
  void on(TimePoint now, const NotSpawned& failed);
  void on(TimePoint now, const Exited& exited);
  void on(TimePoint now, const StopOrdered& ordered);
  void on(TimePoint now, const SignalPassed& passed);
  void on(TimePoint now, const Hurried& hurried);
  void on(TimePoint now, const TreeEmptied& emptied);
  void on(TimePoint now, const Ticked& ticked);

  void send(Report report);
  void kill(TimePoint now);
  void end_round();
  void fail_to_start(std::uint32_t index, const std::string& message, bool user_error);
  void fail(WorkerFailure failure, std::uint32_t index);
  bool any_alive() const;
  bool all_succeeded() const;

  Settings settings_;
  Phase phase_;
  Assignment assignment_;
  RoundId newest_;  // The highest round named to us, in an Assignment or a Stop.
  std::vector<Worker> workers_;
  std::vector<Victim> victims_;
  bool hurried_ = false;
  std::vector<Action> actions_;  // Of the step under way.
};

}  // namespace muster::agent

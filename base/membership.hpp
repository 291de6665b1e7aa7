#pragma once

#include "base/endpoint.hpp"
#include "base/exit_status.hpp"
#include "base/ids.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

/// What an agent and its rendezvous say to each other (protocol.md 1 to 6), as plain values. A job
/// runs in rounds: the agent says Hello, is given an Assignment, starts its workers and reports; a
/// Stop ends the round, the agent answers Empty when nothing of it is left, and the next Assignment
/// or the Verdict follows. How the messages travel (in the process, on a connection) is the
/// business of whoever carries them.
namespace muster {

/// Names one agent process, for all fencing: the SHA-256 of a random secret that the agent and its
/// keeper keep, in hexadecimal. Who knows the secret may say farewell in its name.
using Incarnation = Strong<struct IncarnationTag, std::string>;

/// When a running job takes more nodes in (`--scale-up`).
enum class ScaleUp { Now, Checkpoint, Never };

/// What every node of a job must agree on. A node that says otherwise is refused, with the setting
/// and both values. Durations of zero are none.
struct JobSettings {
  std::uint32_t min_nodes = 1;
  std::uint32_t max_nodes = 1;
  std::uint32_t node_step = 1;  ///< Legal sizes are its multiples from min to max.
  std::uint32_t max_restarts = 0;
  Duration lease =
      std::chrono::seconds(10);       ///< 0: the job can have one node only, in this process.
  std::optional<Duration> last_call;  ///< Set, it replaces the expected size and the quiet 2 s.
  Duration join_timeout = std::chrono::seconds(600);  ///< To the first round.
  std::optional<std::uint32_t> prefer;  ///< The number of nodes that the surroundings tell.
  ScaleUp scale_up = ScaleUp::Now;
  Duration restart_backoff{};  ///< Before the next round after a charged failure.
  bool store_on_server =
      false;  ///< The endpoint's c10d store is the workers' (a fixed master port).
  /// What asks the workers to save before a node leaves; 0: nothing does.
  std::uint32_t preempt_signal = 0;
  /// How long they have for it, where nobody says.
  Duration preempt_deadline = std::chrono::seconds(30);
  /// The job ends when so many attempts in a row have failed at no higher step than the first of
  /// them, at least 2; nullopt: never.
  std::optional<std::uint32_t> max_restarts_without_progress;
  /// What a newer node sets and this version does not know, by name: it must agree as well.
  std::map<std::string, std::string> others;
  friend bool operator==(const JobSettings&, const JobSettings&) = default;
};

/// What ended a worker, in the order in which causes rank (protocol.md 5): a lower one explains a
/// higher one.
enum class Cause { LostNode, OutOfMemory, Hardware, OutsideSignal, WorkerError, PeerLoss };

/// A worker (or, for LostNode, a node) that failed, with all that is known of why.
struct WorkerFailure {
  Rank rank;
  LocalRank local_rank;
  NodeRank node_rank;
  std::string node;                  ///< The node's name, for people. May be empty (one node).
  int pid = 0;                       ///< 0: it could not be started.
  std::optional<ExitStatus> status;  ///< nullopt: it could not be started; `detail` says why.
  bool user_error = false;  ///< Not started for a reason that the user must mend (a bad program).
  Cause cause = Cause::WorkerError;
  std::string detail;  ///< One line: "out of memory: ...". May be empty.
  std::string
      traceback;  ///< The worker's own account (its error file, a Python traceback), or empty.
  std::vector<std::string> stderr_lines;  ///< The last ones, oldest first.
  std::string log_file;                   ///< Where its stderr went, when that was a file.
  std::string hint;   ///< One line for a known kind of failure: what it means, what to do.
  std::string phase;  ///< Its beacon's, at the end; empty: it named none.
  std::optional<std::uint64_t> step;  ///< Its beacon's, at the end; nullopt: it told none.
  std::int64_t ended_at = 0;  ///< Microseconds since 1970 by the node's clock; for people only.
};

/// A worker that ended only because others had: asked or killed by its agent after a Stop.
struct Victim {
  Rank rank;
  ExitStatus status;
};

/// The end of a job, the same on every node.
struct Verdict {
  int exit_code = 0;
  std::string summary;  ///< One line: why it ended so. Empty: success.
  std::optional<WorkerFailure>
      cause;                          ///< The first cause in the whole job, when that was a worker.
  std::vector<WorkerFailure> others;  ///< Failures that it explains, in order of arrival.
  std::vector<Victim> victims;
  std::uint32_t attempts = 1;
  std::uint32_t restarts = 0;
  std::uint32_t max_restarts = 0;
  bool alone = false;            ///< Of this node only, which leaves: the job goes on without it.
  std::optional<RoundId> round;  ///< The job's last.
};

/// What an operator asked for, which agents hold for a server that forgets.
struct Keep {
  std::optional<std::pair<std::uint32_t, std::uint32_t>> sizes;  ///< min and max set by hand.
  bool drained = false;  ///< This node will be in no later round.
  bool ended = false;    ///< The job is to end.
  friend bool operator==(const Keep&, const Keep&) = default;
};

/// What an agent knows of its job when it comes (back) to a server, which may have forgotten it.
struct Held {
  std::optional<RoundId> round;  ///< The newest that was assigned to it; nullopt: none ever.
  bool empty = false;            ///< It has said Empty of that round (or Stuck), to some server.
  bool stuck = false;            ///< It has said Stuck: it can be in no later round.
  bool unbroken = true;          ///< Its lease did not end since that Assignment.
  bool succeeded = false;        ///< All its workers exited 0 in that round.
  bool started = false;          ///< All its workers were started in that round.
  bool acknowledged = false;     ///< It has said Acknowledged of that round.
  bool stopped = false;          ///< It has answered the Stop of that round.
  /// It was told that workers of that round are asked to save or to leave, for no failure: who lost
  /// a peer then did not fail.
  bool excused = false;
  std::vector<WorkerFailure> failures;  ///< That it has reported of that round.
  std::vector<Victim> victims;          ///< Likewise, once empty.
  NodeRank node_rank;                   ///< In that round.
  std::uint32_t nodes = 0;              ///< Of that round: how many members must come back.
  RoundId highest;                      ///< The highest round ever named to it, Stops included.
  std::uint32_t attempts = 0;           ///< Rounds that the job has started, as far as it knows.
  std::uint32_t restarts = 0;           ///< Failures charged.
  std::vector<Incarnation> gone;        ///< Named as gone in a Stop of that round.
  std::uint64_t best_step = 0;          ///< As the last Assignment named it.
  std::uint32_t fruitless = 0;          ///< Likewise.
  Keep kept;                            ///< The newest.
  std::vector<std::string> excluded;    ///< Machine keys, as the last Assignment named them.
  std::optional<Verdict> verdict;       ///< The job has ended, as it knows.
};

// --- What an agent says. ---

/// A node's agent offers itself.
struct Hello {
  std::string job;         ///< `--rdzv-id`. Any bytes, at most kMaxName.
  std::string launch_tag;  ///< What the scheduler calls this launch; empty: none.
  Incarnation incarnation;
  std::string machine;      ///< The machine key: for places, stable ranks, exclusion.
  std::string name;         ///< The host's name, for people only: it identifies nothing.
  std::string version;      ///< Of muster, for people.
  std::uint32_t slots = 1;  ///< Workers that it would start.
  std::string role;
  std::optional<NodeRank> node_rank;  ///< Given explicitly.
  std::string topology;               ///< Label by which neighbours stand together; empty: none.
  Endpoint store;  ///< Where it would host the worker store, were it given rank 0; the port is
                   ///< reserved already. An unspecified or loopback host: the rendezvous finds a
                   ///< better one where other nodes need it.
  bool store_is_fixed = false;         ///< `--master-addr`, `--local-addr`: `store` stays as it is.
  std::vector<std::string> addresses;  ///< From which its workers may come to the store.
  JobSettings settings;
  bool hosts_server = false;  ///< The rendezvous is embedded in this agent's process.
  Held held;
  std::uint64_t ping = 0;  ///< Hello counts as a ping of this number.
};

/// Asks for the lease to be renewed (protocol.md 2).
struct Ping {
  std::uint64_t number = 0;        ///< Counts up within an incarnation; Hello counts as one.
  std::uint64_t memory_used = 0;   ///< Bytes, of the node's innermost limit; 0: unknown.
  std::uint64_t memory_limit = 0;  ///< Bytes; 0: unknown, or none.
};

/// What an agent reports of its round.
struct Acknowledged {  ///< The Assignment arrived; node rank 0: the store listens as well.
  RoundId round;
};
struct Unreachable {  ///< The master's store port did not answer to the knock in time.
  RoundId round;
  std::string detail;  ///< Both ends and why: "10.0.0.2 to 10.0.0.1:4711: connection timed out".
};
struct Started {  ///< All its workers run.
  RoundId round;
};
struct Failed {
  RoundId round;
  WorkerFailure failure;
  std::uint32_t started = 0;  ///< Workers of the node that were started in this round.
};
struct Succeeded {  ///< All its workers exited 0.
  RoundId round;
};
/// The Stop arrived, and every failure that the agent had seen by then was reported before this.
struct Stopped {
  RoundId round;
};
struct Empty {  ///< Nothing of the round is left on the node, whatever ended it.
  RoundId round;
  std::vector<Victim> victims;
  Endpoint next_store;  ///< Reserved for the round to come, as in Hello.
};
struct Stuck {  ///< As Empty, but these processes could not be killed: the node can't be used.
  RoundId round;
  std::vector<int> pids;
};
struct Leaving {  ///< The user's signal ended this launcher, or the node is drained.
  int signal = 0;
  bool preempted = false;  ///< The signal was a preemption notice: others may go on.
};
struct VerdictSeen {};
/// The machine will be taken away (`--preempt-command`, SIGTERM under a scheduler).
struct Notice {
  std::string reason;
  Duration left{};  ///< Until then at most; 0: unknown.
};
/// Answers a Prepare: so many of the node's workers have not saved yet.
struct Saving {
  RoundId round;
  std::uint32_t left = 0;
};
/// The workers' store, which this agent hosts, turned an address away (protocol.md 7).
struct StoreRefused {
  RoundId round;
  std::string address;  ///< Numeric.
};

/// What one worker's beacon says.
struct WorkerProgress {
  Rank rank;
  std::uint64_t step = 0;   ///< The newest that it has begun or finished, as it counts.
  std::uint64_t saves = 0;  ///< Checkpoints that it has written in this round.
  std::string phase;        ///< "train", "checkpoint", ...; at most kMaxPhase bytes.
  Duration quiet{};         ///< Since its beacon changed.
};
/// How far the node's workers are: those that use their beacon. Once a second at most while
/// anything changes, and before Failed and Stopped.
struct Progress {
  RoundId round;
  std::vector<WorkerProgress> workers;  ///< By rank.
};

using Report =
    std::variant<Hello, Acknowledged, Unreachable, Started, Failed, Succeeded, Stopped, Empty,
                 Stuck, Leaving, VerdictSeen, Notice, Saving, StoreRefused, Progress>;

/// An incarnation is gone, and nothing of it is left: its ranks are free at once. Said on a
/// connection of its own, by the agent that leaves or by its keeper.
struct Farewell {
  std::string job;
  std::string secret;            ///< Behind the incarnation.
  std::optional<RoundId> round;  ///< That it held.
  std::string reason;            ///< For people: "killed by SIGKILL".
  bool preempted = false;
};

// --- What the rendezvous says. ---

/// A node's part in a round.
struct Assignment {
  RoundId round;
  std::uint32_t attempt = 0;   ///< Rounds that the job started before this one.
  std::uint32_t restarts = 0;  ///< Failures charged to the job so far.
  std::uint32_t max_restarts = 0;
  std::uint64_t best_step = 0;  ///< The highest that any worker of the job has told so far.
  std::uint32_t fruitless = 0;  ///< Failed attempts in a row since it was last exceeded.
  std::uint32_t world_size = 1;
  Rank rank_offset;             ///< Global rank of this node's first worker; the others follow.
  LocalRank local_rank_offset;  ///< Above 0 where several agents share a machine.
  std::uint32_t local_world_size = 1;  ///< Workers of the machine.
  NodeRank node_rank;
  std::uint32_t nodes = 1;
  std::uint32_t role_rank_offset = 0;
  std::uint32_t role_world_size = 1;
  Endpoint master;               ///< Where the workers meet. Node rank 0's agent hosts it.
  bool store_on_server = false;  ///< Unless this is set: then the rendezvous server does.
  std::string secret;            ///< Of the round: who knocks with it is admitted to the store.
  std::vector<std::string> admitted;  ///< To node rank 0 only: the addresses of all nodes.
  /// Machine keys that are excluded for now, which the agent keeps for a server that forgets
  /// (Held).
  std::vector<std::string> excluded;
};

/// Ends a round.
struct Stop {
  RoundId round;
  int signal = 0;                 ///< What to ask the workers with.
  std::string reason;             ///< For the log: "rank 2 failed".
  bool keep = false;              ///< Workers that can recover in place may be kept.
  std::vector<Incarnation> gone;  ///< Members of the round that are.
  /// The membership changes, and nothing has failed: what fails after this was answered is no
  /// cause.
  bool blameless = false;
};

/// A machine will be taken away: save. To the main process of every rank of the job.
struct Prepare {
  RoundId round;
  std::string reason;
  Duration left{};  ///< Until the deadline, from when the agent sent the quoted ping.
};

/// Node rank 0's agent has acknowledged its Assignment: from now a knock that fails for 5 s counts.
struct MasterUp {
  RoundId round;
};

using Order = std::variant<Assignment, Stop, Verdict, Prepare, MasterUp, Keep>;

/// Why nothing happens yet, for people: for whom the node waits, and who is there.
struct Waiting {
  std::string text;
  std::optional<RoundId> round;  ///< That runs without the node: none that it is in.
};

/// Answers a Ping or a Hello by its number: the lease ends that long after the agent sent it.
struct Pong {
  std::uint64_t number = 0;
  bool gone = false;  ///< The incarnation's ranks were given away: kill at once.
};

/// The first answer to a Hello that is taken.
struct Welcome {
  std::string version;    ///< Of the server, for people.
  bool embedded = false;  ///< It goes with the launcher that hosts it.
};

/// The node is not taken: what was wrong, on both sides, and what to do. The agent ends.
struct Refusal {
  std::string message;
  int exit_code = 1;
};

/// An order and how long it is good (protocol.md 2).
struct Directive {
  std::uint64_t ping = 0;         ///< The newest of this agent that the server had heard.
  std::optional<Duration> right;  ///< What then was left of the server's right; nullopt: for ever.
  Order order;
};

/// The verdict is known everywhere: leave.
struct Dismissal {};

using AgentMessage = std::variant<Ping, Report>;
using ServerMessage = std::variant<Welcome, Refusal, Pong, Directive, Waiting, Dismissal>;

}  // namespace muster

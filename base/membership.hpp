#pragma once

#include "base/endpoint.hpp"
#include "base/exit_status.hpp"
#include "base/ids.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

/// What an agent and its rendezvous say to each other (protocol.md 1 to 5), as plain values. A job
/// runs in rounds: the agent says Hello, is given an Assignment, starts its workers and reports; a
/// Stop ends the round, the agent answers Empty when nothing of it is left, and the next Assignment
/// or the Verdict follows. How the messages travel (in the process, on a connection) is the
/// business of whoever carries them.
namespace muster {

/// A node's agent offers itself.
struct Hello {
  std::uint32_t slots = 1;  ///< Workers that it would start.
  std::string role;
  Endpoint store;  ///< Where it would host the worker store, were it given rank 0. The port is
                   ///< reserved already.
};

/// A node's part in a round.
struct Assignment {
  RoundId round;
  std::uint32_t attempt = 0;   ///< Rounds that the job started before this one.
  std::uint32_t restarts = 0;  ///< Failures charged to the job so far.
  std::uint32_t max_restarts = 0;
  std::uint32_t world_size = 1;
  Rank rank_offset;             ///< Global rank of this node's first worker; the others follow.
  LocalRank local_rank_offset;  ///< Above 0 where several agents share a machine.
  std::uint32_t local_world_size = 1;
  NodeRank node_rank;
  std::uint32_t nodes = 1;
  std::uint32_t role_rank_offset = 0;
  std::uint32_t role_world_size = 1;
  Endpoint master;  ///< Where the workers meet. Node rank 0's agent hosts it.
};

/// Ends a round.
struct Stop {
  RoundId round;
  int signal = 0;      ///< What to ask the workers with.
  std::string reason;  ///< For the log: "rank 2 failed".
};

/// What ended a worker, in the order in which causes rank (protocol.md 5): a lower one explains a
/// higher one.
enum class Cause { LostNode, OutOfMemory, Hardware, OutsideSignal, WorkerError, PeerLoss };

/// A worker that failed, with all that is known of why.
struct WorkerFailure {
  Rank rank;
  LocalRank local_rank;
  NodeRank node_rank;
  int pid = 0;                       ///< 0: it could not be started.
  std::optional<ExitStatus> status;  ///< nullopt: it could not be started; `detail` says why.
  bool user_error = false;  ///< Not started for a reason that the user must mend (a bad program).
  Cause cause = Cause::WorkerError;
  std::string detail;  ///< One line: "out of memory: ...". May be empty.
  std::string
      traceback;  ///< The worker's own account (its error file, a Python traceback), or empty.
  std::vector<std::string> stderr_lines;  ///< The last ones, oldest first.
  std::string log_file;                   ///< Where its stderr went, when that was a file.
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
};

using Order = std::variant<Assignment, Stop, Verdict>;

/// What an agent reports of its round.
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
struct Empty {  ///< Nothing of the round is left on the node, whatever ended it.
  RoundId round;
  std::vector<Victim> victims;
  Endpoint next_store;  ///< Reserved for the round to come, as in Hello.
};
struct Stuck {  ///< As Empty, but these processes could not be killed: the node can't be used.
  RoundId round;
  std::vector<int> pids;
};
struct Leaving {  ///< The user's signal ended this launcher.
  int signal = 0;
};

using Report = std::variant<Hello, Started, Failed, Succeeded, Empty, Stuck, Leaving>;

}  // namespace muster

#pragma once

#include "agent/core/known_failures.hpp"
#include "base/membership.hpp"

#include <optional>
#include <string>
#include <vector>

namespace muster::agent {

/// What was seen of a worker that failed.
struct Observed {
  int pid = 0;
  ExitStatus status;
  bool was_passed_on = false;  ///< The signal that ended it: by us, from the launcher.
  bool has_peers = false;      ///< Other workers are in the job: one may have gone.
  std::vector<std::string>
      stderr_lines;           ///< The last ones; empty where stderr was not ours to read.
  std::string recorded;       ///< The traceback or message of its error file; empty: none.
  std::string expired_timer;  ///< The timer of its own that ended it; empty: none.
  std::string out_of_memory;  ///< The kernel's evidence of an out-of-memory kill; empty: none.
  std::string log_file;
  std::optional<Room> shared_memory;  ///< In /dev/shm.
  std::int64_t ended_at = 0;          ///< Microseconds since 1970; 0: unknown.
};

/// Names the cause: what the kernel killed for memory, what was signalled from outside, what failed
/// by itself, and what only says that a peer has gone. Where the failure is of a known kind the
/// hint says so.
[[nodiscard]] WorkerFailure assess(Observed observed);

/// The last Python traceback in these lines, its exception line included; empty: none.
[[nodiscard]] std::string python_traceback(const std::vector<std::string>& lines);

}  // namespace muster::agent

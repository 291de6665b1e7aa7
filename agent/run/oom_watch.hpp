#pragma once

#include "base/posix/cgroup.hpp"
#include "base/posix/fd.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace muster::agent {

/// Tells an out-of-memory kill from any other SIGKILL, by the kernel's own evidence. Where we may
/// read the kernel's log, and it speaks of pids as we see them, the log decides: it names whom it
/// killed. Elsewhere the kill counter of our own memory cgroup does, which names nobody: what has
/// been killed since the round began may have been the worker.
class OomWatch {
 public:
  OomWatch();

  /// What has happened so far is none of the round's.
  void begin_round();

  /// Evidence that the kernel killed `pid` for memory in this round, in one line; empty: none.
  [[nodiscard]] std::string explain(int pid);

 private:
  std::string kernel_line_about(int pid) const;

  std::optional<posix::Cgroup> group_;  // Our own, which the workers share.
  std::string
      limit_;  // Of it or of the parent that has one: "cgroup /job7 reached its limit of 60 MiB".
  std::uint64_t kills_ = 0;
  posix::Fd kernel_log_;
  bool log_decides_ = false;
  std::string log_text_;  // Of this round, the last of it.
};

}  // namespace muster::agent

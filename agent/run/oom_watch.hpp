#pragma once

#include "base/posix/cgroup.hpp"
#include "base/posix/fd.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace muster::agent {

/// Tells an out-of-memory kill from any other SIGKILL, by the kernel's own evidence: the kill
/// counters of our memory cgroups (v1 and v2), and the kernel's log where we may read it.
class OomWatch {
 public:
  /// Notes where counters and log stand. Opening the log costs a system call; where it is
  /// forbidden, counters decide.
  OomWatch();

  /// Evidence that the kernel killed `pid` for memory since the last call, in one line; empty:
  /// there is none.
  [[nodiscard]] std::string explain(int pid);

 private:
  struct Counted {
    posix::Cgroup group;
    std::uint64_t kills = 0;
  };

  std::string kernel_log_of(int pid);

  std::vector<Counted> groups_;
  posix::Fd kernel_log_;
  std::string log_text_;
};

}  // namespace muster::agent

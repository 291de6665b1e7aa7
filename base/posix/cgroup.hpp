#pragma once

#include <string>
#include <vector>

namespace muster::posix {

/// A cgroup of a process that has the controller asked for, and where it shows in the file system.
struct Cgroup {
  std::string name;    ///< As /proc/PID/cgroup says it: `/job7`.
  std::string folder;  ///< `/sys/fs/cgroup/pids/job7`.
  bool v2 = false;
};

/// The cgroups that limit a process through `controller` ("pids", "memory"): its own and every
/// parent's, innermost first, under v1 or v2, found in /proc/PID/mountinfo. Empty where nothing
/// shows.
[[nodiscard]] std::vector<Cgroup> cgroups_of(int pid, const std::string& controller);

/// The first line of a file; empty where it can't be read.
[[nodiscard]] std::string first_line(const std::string& path);

}  // namespace muster::posix

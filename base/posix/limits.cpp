#include "base/posix/limits.hpp"

#include "base/posix/cgroup.hpp"

#include <cstdlib>
#include <sched.h>
#include <unistd.h>
#include <vector>

namespace muster::posix {
namespace {

unsigned long long number(const std::string& text) {
  return std::strtoull(text.c_str(), nullptr, 10);
}

}  // namespace

rlimit raise_open_file_limit() {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit raised = before;
  raised.rlim_cur = raised.rlim_max;
  if (before.rlim_cur != before.rlim_max) ::setrlimit(RLIMIT_NOFILE, &raised);
  return before;
}

std::size_t open_file_limit() {
  rlimit now{};
  ::getrlimit(RLIMIT_NOFILE, &now);
  return now.rlim_cur;
}

std::string explain_process_limit() {
  for (const auto& group : cgroups_of(::getpid(), "pids")) {
    const auto limit = first_line(group.folder + "/pids.max");
    if (limit.empty() || limit == "max") continue;
    // A process may have ended since the fork: what the kernel counted stays (`max 3`).
    const auto current = first_line(group.folder + "/pids.current");
    const auto refused = first_line(group.folder + "/pids.events");
    if (number(current) >= number(limit) ||
        (refused.starts_with("max ") && number(refused.substr(4)) > 0)) {
      return "; the limit pids.max of cgroup " + group.name + " is reached (" + limit + ")";
    }
  }
  rlimit own{};
  if (::getuid() != 0 && ::getrlimit(RLIMIT_NPROC, &own) == 0 && own.rlim_cur != RLIM_INFINITY) {
    return "; this user's limit on processes (ulimit -u) is " + std::to_string(own.rlim_cur);
  }
  const auto pid_max = first_line("/proc/sys/kernel/pid_max");
  const auto threads_max = first_line("/proc/sys/kernel/threads-max");
  if (pid_max.empty() || threads_max.empty()) return {};
  return "; the system's limits are kernel.pid_max = " + pid_max +
         " and kernel.threads-max = " + threads_max;
}

std::uint32_t usable_cpus() {
  // The mask's size is the kernel's: grown until it is accepted.
  for (int cpus = CPU_SETSIZE; cpus <= 1 << 20; cpus *= 2) {
    const auto size = CPU_ALLOC_SIZE(cpus);
    std::vector<unsigned char> bytes(size);
    auto* mask = reinterpret_cast<cpu_set_t*>(bytes.data());
    if (::sched_getaffinity(0, size, mask) == 0)
      return static_cast<std::uint32_t>(CPU_COUNT_S(size, mask));
  }
  return 1;
}

}  // namespace muster::posix

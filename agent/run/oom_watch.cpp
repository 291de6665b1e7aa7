#include "agent/run/oom_watch.hpp"

#include "base/posix/fork.hpp"
#include "base/posix/kernel_log.hpp"

#include <cstdlib>
#include <fstream>

namespace muster::agent {
namespace {

constexpr std::size_t kLogTextLimit = 64 * 1024;

std::uint64_t kills_in(const posix::Cgroup& group) {
  std::ifstream in(group.folder + (group.v2 ? "/memory.events" : "/memory.oom_control"));
  std::string name;
  std::uint64_t value = 0;
  while (in >> name >> value) {
    if (name == "oom_kill") return value;
  }
  return 0;
}

std::string limit_of(const posix::Cgroup& group) {
  const auto text =
      posix::first_line(group.folder + (group.v2 ? "/memory.max" : "/memory.limit_in_bytes"));
  const auto bytes = std::strtoull(text.c_str(), nullptr, 10);
  return bytes == 0 ? text : std::to_string(bytes / (1024 * 1024)) + " MiB";
}

}  // namespace

OomWatch::OomWatch() : kernel_log_(posix::open_kernel_log()) {
  for (auto& group : posix::cgroups_of(posix::own_pid(), "memory")) {
    const auto kills = kills_in(group);
    groups_.push_back({std::move(group), kills});
  }
}

std::string OomWatch::explain(int pid) {
  std::string by_counter;
  for (auto& counted : groups_) {
    const auto kills = kills_in(counted.group);
    if (kills > counted.kills && by_counter.empty()) {
      by_counter =
          "cgroup " + counted.group.name + " reached its limit of " + limit_of(counted.group);
    }
    counted.kills = kills;
  }
  const auto by_log = kernel_log_of(pid);
  if (by_log.empty() && by_counter.empty()) return {};
  std::string text = "killed by the kernel for memory";
  if (!by_counter.empty()) text += ": " + by_counter;
  if (!by_log.empty()) text += "; kernel log: " + by_log;
  return text;
}

/// The kernel's line about its kill of `pid`: `Memory cgroup out of memory: Killed process 77
/// (python3) total-vm:...`.
std::string OomWatch::kernel_log_of(int pid) {
  log_text_ += posix::read_kernel_log(kernel_log_);
  if (log_text_.size() > kLogTextLimit) log_text_.erase(0, log_text_.size() - kLogTextLimit);
  const auto found = log_text_.rfind("Killed process " + std::to_string(pid) + " ");
  if (found == std::string::npos) return {};
  const auto before = log_text_.rfind('\n', found);
  const auto start = before == std::string::npos ? 0 : before + 1;
  return log_text_.substr(start, log_text_.find('\n', found) - start);
}

}  // namespace muster::agent

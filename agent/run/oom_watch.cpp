#include "agent/run/oom_watch.hpp"

#include "agent/run/memory_cgroup.hpp"
#include "base/posix/fork.hpp"
#include "base/posix/kernel_log.hpp"

#include <cstdint>
#include <vector>

namespace muster::agent {
namespace {

constexpr std::size_t kLogTextLimit = 64 * 1024;
constexpr std::uint64_t kMebibyte = 1024 * 1024;
/// The innermost limit that there is; empty: none.
std::string describe_limit(const std::vector<posix::Cgroup>& groups) {
  const auto group = limited_memory_cgroup(groups);
  if (!group) return {};
  const auto mebibytes = memory_limit(*group).value_or(0) / kMebibyte;
  return "cgroup " + group->name + " has a limit of " + std::to_string(mebibytes) + " MiB";
}

}  // namespace

OomWatch::OomWatch()
    : kernel_log_(posix::open_kernel_log()),
      log_decides_(kernel_log_ && posix::has_first_pid_space()) {
  const auto groups = posix::cgroups_of(posix::own_pid(), "memory");
  if (!groups.empty()) group_ = groups.front();
  limit_ = describe_limit(groups);
}

void OomWatch::begin_round() {
  if (group_) kills_ = memory_kills(*group_);
  (void)posix::read_kernel_log(kernel_log_);
  log_text_.clear();
}

std::string OomWatch::explain(int pid) {
  log_text_ += posix::read_kernel_log(kernel_log_);
  if (log_text_.size() > kLogTextLimit) log_text_.erase(0, log_text_.size() - kLogTextLimit);
  const auto by_log = kernel_line_about(pid);
  std::string text;
  if (!by_log.empty()) {
    text = "killed by the kernel for memory: " + by_log;
  } else if (!log_decides_ && group_ && memory_kills(*group_) > kills_) {
    text = "probably killed by the kernel for memory: cgroup " + group_->name + " counts a kill";
  }
  if (!text.empty() && !limit_.empty()) text += "; " + limit_;
  return text;
}

/// `Memory cgroup out of memory: Killed process 77 (python3) total-vm:...`
std::string OomWatch::kernel_line_about(int pid) const {
  const auto found = log_text_.rfind("Killed process " + std::to_string(pid) + " ");
  if (found == std::string::npos) return {};
  const auto before = log_text_.rfind('\n', found);
  const auto start = before == std::string::npos ? 0 : before + 1;
  return log_text_.substr(start, log_text_.find('\n', found) - start);
}

}  // namespace muster::agent

#include "agent/run/memory_cgroup.hpp"

#include "base/posix/file.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>

namespace muster::agent {
namespace {

/// What v1 says where there is no limit is about 2^63.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;

/// Kernels of today write a few KiB of such lines. What stands behind this is not looked at.
constexpr std::size_t kMostBytes = 64UL * 1024;

/// The value behind a name in a file of such lines.
std::optional<std::uint64_t> value_in(const std::string& path, const std::string& wanted) {
  const auto content = posix::read_start(path, kMostBytes);
  if (!content) return std::nullopt;
  for (const auto line : lines_of(*content)) {
    if (!line.starts_with(wanted + " ")) continue;
    std::uint64_t value = 0;
    const auto digits = line.substr(wanted.size() + 1);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return read.ec == std::errc{} ? std::optional(value) : std::nullopt;
  }
  return std::nullopt;
}

std::uint64_t number_in(const std::string& path) {
  return std::strtoull(posix::first_line(path).c_str(), nullptr, 10);  // 0 for v2's "max".
}

}  // namespace

std::uint64_t memory_kills(const posix::Cgroup& group) {
  return value_in(group.folder + (group.v2 ? "/memory.events" : "/memory.oom_control"), "oom_kill")
      .value_or(0);
}

std::optional<std::uint64_t> memory_limit(const posix::Cgroup& group) {
  const auto bytes =
      number_in(group.folder + (group.v2 ? "/memory.max" : "/memory.limit_in_bytes"));
  return bytes == 0 || bytes >= kNoLimit ? std::nullopt : std::optional(bytes);
}

std::uint64_t memory_in_use(const posix::Cgroup& group) {
  const auto used =
      number_in(group.folder + (group.v2 ? "/memory.current" : "/memory.usage_in_bytes"));
  const std::string prefix = group.v2 ? "" : "total_";
  std::uint64_t cache = 0;
  for (const std::string kind : {"active_file", "inactive_file"})
    cache += value_in(group.folder + "/memory.stat", prefix + kind).value_or(0);
  return used - std::min(used, cache);
}

std::optional<posix::Cgroup> limited_memory_cgroup(
    const std::vector<posix::Cgroup>& innermost_first) {
  const auto found =
      std::find_if(innermost_first.begin(), innermost_first.end(),
                   [](const posix::Cgroup& group) { return memory_limit(group).has_value(); });
  return found == innermost_first.end() ? std::nullopt : std::optional(*found);
}

}  // namespace muster::agent

#pragma once

#include "base/posix/cgroup.hpp"

#include <cstdint>
#include <optional>
#include <vector>

/// What a memory cgroup, of v1 or v2, tells of itself.
namespace muster::agent {

/// Processes of it that the kernel has killed for memory; of v2, of the cgroups below as well.
[[nodiscard]] std::uint64_t memory_kills(const posix::Cgroup& group);

/// nullopt: it has none.
[[nodiscard]] std::optional<std::uint64_t> memory_limit(const posix::Cgroup& group);

/// Bytes in use that the kernel can't take back at will: without the cache of files.
[[nodiscard]] std::uint64_t memory_in_use(const posix::Cgroup& group);

/// The first of these that has a limit.
[[nodiscard]] std::optional<posix::Cgroup> limited_memory_cgroup(
    const std::vector<posix::Cgroup>& innermost_first);

}  // namespace muster::agent

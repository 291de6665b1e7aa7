#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <sys/resource.h>

namespace muster::posix {

/// Raises the open-file limit from soft to hard and returns what it was, for the workers to get
/// back.
rlimit raise_open_file_limit();

/// Our own open-file limit, as it is now.
[[nodiscard]] std::size_t open_file_limit();

/// After fork failed with EAGAIN: `; the limit pids.max of cgroup /job7 is reached (128)`, by what
/// the kernel shows of this process's cgroups and limits; empty where it shows nothing.
[[nodiscard]] std::string explain_process_limit();

/// The number of processors that this process may run on (its affinity mask).
[[nodiscard]] std::uint32_t usable_cpus();

}  // namespace muster::posix

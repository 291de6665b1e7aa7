#pragma once

#include "base/posix/fd.hpp"

#include <string>

namespace muster::posix {

/// /dev/kmsg, at its end; none where we may not read it.
[[nodiscard]] Fd open_kernel_log();

/// The messages that came since, one a line, without their stamps. Never blocks.
[[nodiscard]] std::string read_kernel_log(const Fd& log);

/// Whether pids here are those of the kernel's log: no PID namespace (a container's) lies between.
[[nodiscard]] bool has_first_pid_space();

}  // namespace muster::posix

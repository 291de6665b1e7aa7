#pragma once

#include "base/error.hpp"
#include "base/exit_status.hpp"

#include <initializer_list>
#include <optional>
#include <string>

namespace muster::posix {

/// fork(2): 0 in the child. Only where no other thread exists. Both sides' buffered output must be
/// empty.
[[nodiscard]] Result<int> fork_process();

/// setpgid(0, 0).
void lead_process_group();

[[nodiscard]] int own_pid();
/// 0: it is outside our process namespace.
[[nodiscard]] int parent_pid();

/// execve(2): this process becomes that program, with our descriptors. Returns only why it can't.
[[nodiscard]] Error become(const std::string& path, const std::vector<std::string>& argv,
                           const std::vector<std::string>& environment);

/// How a child ended, reaping it; nullopt while it runs.
[[nodiscard]] std::optional<ExitStatus> reap_child(int pid);

/// Blocks until one of the descriptors is readable.
void wait_readable(std::initializer_list<int> fds);

/// Whether process numbers here are not the machine's: a container mostly has a process namespace
/// of its own. True where /proc does not say.
[[nodiscard]] bool has_own_process_namespace();

/// The command name of a process (/proc/PID/comm); empty when it is gone.
[[nodiscard]] std::string process_name(int pid);

}  // namespace muster::posix

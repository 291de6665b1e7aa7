#pragma once

namespace muster::posix {

/// A child that shares our memory, as vfork's does, but runs on a stack of its own.
struct VforkChild {
  int pid = -1;
  int pidfd = -1;  ///< -1: the kernel knows none (before 5.2).
  int error = 0;   ///< Where pid is -1.
};

/// Starts `run(argument)`, which must use system calls only and end in exec or exit, and returns
/// when it has. `stack_top` is the upper end of its stack, aligned to 16 bytes. In the cgroup (v2)
/// whose folder's descriptor is given, where that can be done; -1: in ours.
[[nodiscard]] VforkChild start_vfork_child(int (*run)(void*), void* argument, char* stack_bottom,
                                           char* stack_top, int cgroup);

}  // namespace muster::posix

#include "base/posix/vfork_child.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>

namespace muster::posix {
namespace {

constexpr int kShared = CLONE_VM | CLONE_VFORK;

#ifdef __x86_64__

/// clone3(2), for which libc has no function. The child begins behind the system call on its own
/// stack, where no frame of ours is, so it calls `run` from there and never returns. An address or
/// thread sanitizer knows nothing of it: it runs none of their code.
VforkChild clone_into(int cgroup, int (*run)(void*), void* argument, char* stack_bottom,
                      char* stack_top) {
  VforkChild child;
  clone_args args{};
  args.flags = kShared | CLONE_PIDFD | CLONE_INTO_CGROUP;
  args.exit_signal = SIGCHLD;
  args.pidfd = reinterpret_cast<std::uintptr_t>(&child.pidfd);
  args.stack = reinterpret_cast<std::uintptr_t>(stack_bottom);
  args.stack_size = static_cast<std::uint64_t>(stack_top - stack_bottom);
  args.cgroup = static_cast<std::uint64_t>(cgroup);
  long result = SYS_clone3;
  // The system call leaves every register but rax, rcx and r11 as it is, in the child too.
  register auto* const entry asm("r8") = run;
  register void* const handed asm("r9") = argument;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "mov %%r9, %%rdi\n\t"
      "call *%%r8\n\t"
      "ud2\n"
      "1:"
      : "+a"(result)
      : "D"(&args), "S"(sizeof args), "r"(entry), "r"(handed)
      : "rcx", "r11", "memory", "cc");
  if (result < 0) {
    child.error = static_cast<int>(-result);
  } else {
    child.pid = static_cast<int>(result);
  }
  return child;
}

#else

VforkChild clone_into(int, int (*)(void*), void*, char*, char*) {
  return {.pid = -1, .pidfd = -1, .error = ENOSYS};
}

#endif

VforkChild clone_here(int flags, int (*run)(void*), void* argument, char* stack_top) {
  VforkChild child;
  child.pid = ::clone(run, stack_top, flags | kShared | SIGCHLD, argument, &child.pidfd);
  if (child.pid < 0) child.error = errno;
  return child;
}

}  // namespace

VforkChild start_vfork_child(int (*run)(void*), void* argument, char* stack_bottom, char* stack_top,
                             int cgroup) {
  if (cgroup >= 0) {
    const auto child = clone_into(cgroup, run, argument, stack_bottom, stack_top);
    if (child.pid >= 0) return child;
    // An old kernel, a cgroup that takes no processes: then in ours.
  }
  auto child = clone_here(CLONE_PIDFD, run, argument, stack_top);
  // A sandbox may know the system call, and not the flag.
  if (child.error == EINVAL) child = clone_here(0, run, argument, stack_top);
  return child;
}

}  // namespace muster::posix

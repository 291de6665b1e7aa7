// old_kernel PROGRAM [ARGUMENTS]: runs a program as on Linux 4.18 (RHEL 8), as far as system calls
// go: every newer one answers ENOSYS. That clone makes a pidfd is newer too, and is refused.

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

#if defined(__x86_64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_AARCH64;
#endif
/// pidfd_send_signal of Linux 5.1, from which on all architectures number alike. Of 4.18's own
/// numbers none is beyond.
constexpr unsigned kFirstNewer = 424;

int fail(const char* what) {
  std::fprintf(stderr, "old_kernel: %s: %s\n", what, std::strerror(errno));
  return 125;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: old_kernel PROGRAM [ARGUMENTS]\n");
    return 125;
  }
  const sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kFirstNewer, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_PIDFD, 2, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
  };
  const sock_fprog program{.len = sizeof rules / sizeof *rules,
                           .filter = const_cast<sock_filter*>(rules)};
  // Without the first, root alone may filter; with it, programs that change the user can not.
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0 &&
      (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
       ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)) {
    return fail("seccomp");
  }
  ::execvp(arguments[1], arguments + 1);
  return fail(arguments[1]);
}

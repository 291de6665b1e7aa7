// Part of every program of ours, linked as an object: nobody calls it.

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

/// Opens /dev/null on those of 0, 1 and 2 that are closed, so that no other descriptor takes their
/// number. System calls only: no library, no sanitizer is there yet.
__attribute__((no_sanitize("address", "thread", "undefined"))) void take_standard_descriptors() {
  for (int fd = 0; fd < 3; ++fd) {
    if (::syscall(SYS_fcntl, fd, F_GETFD) >= 0 || errno != EBADF) continue;
    const int access = fd == 0 ? O_RDONLY : O_WRONLY;
    if (::syscall(SYS_openat, AT_FDCWD, "/dev/null", access) != fd)
      ::syscall(SYS_exit_group, EXIT_FAILURE);
  }
}

/// Called before the libraries that we are linked with are initialised: gRPC opens a descriptor
/// then, which would be taken for the stdin that a user has closed.
[[gnu::section(".preinit_array"),
  gnu::used]] void (*const kBeforeAll)() = take_standard_descriptors;

}  // namespace

// Part of every program of ours, linked as an object: nobody calls it.

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace {

/// Opens /dev/null on those of 0, 1 and 2 that are closed, so that no other descriptor takes their
/// number. Before the libraries are initialised: gRPC opens a descriptor then, which would be taken
/// for the stdin that a user has closed.
[[gnu::constructor(101)]] void take_standard_descriptors() {
  for (int fd = 0; fd < 3; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    if (::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd) ::_exit(1);
  }
}

}  // namespace

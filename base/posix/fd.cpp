#include "base/posix/fd.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace muster::posix {

void Fd::reset(int raw) noexcept {
  if (raw_ >= 0) ::close(raw_);
  raw_ = raw;
}

std::string errno_text(int error) {
  char buffer[128];
  return ::strerror_r(error, buffer, sizeof buffer);
}

Error errno_error(int error, std::string act) {
  Errc code = Errc::Internal;
  switch (error) {
    case ENOENT:
    case ESRCH:
      code = Errc::NotFound;
      break;
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case ENOMEM:
    case ENOSPC:
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case EHOSTUNREACH:
    case ENETUNREACH:
      code = Errc::Unavailable;
      break;
    case ETIMEDOUT:
      code = Errc::Timeout;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOTDIR:
    case EISDIR:
    case ENOEXEC:
    case ELOOP:
    case ENAMETOOLONG:
    case E2BIG:
    case EADDRINUSE:
    case EADDRNOTAVAIL:
    case EINVAL:
      code = Errc::InvalidArgument;
      break;
    default:
      break;
  }
  auto message = std::move(act) + ": " + errno_text(error);
  if (error == EMFILE) {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    message += "; the limit on open files (ulimit -n) is " + std::to_string(files.rlim_cur);
  }
  return Error{code, std::move(message)};
}

Result<Fd> duplicate(int fd) {
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (copy < 0) return pass(errno_error(errno, "duplicate descriptor " + std::to_string(fd)));
  return Fd(copy);
}

void close_others_on_exec() {
  // By hand, since the system call for it is of Linux 5.11.
  DIR* const listing = ::opendir("/proc/self/fd");
  if (listing == nullptr) return;
  while (const dirent* entry = ::readdir(listing)) {
    const int fd = std::atoi(entry->d_name);
    if (fd > STDERR_FILENO) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  ::closedir(listing);
}

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return pass(errno_error(errno, "make a pipe"));
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

}  // namespace muster::posix

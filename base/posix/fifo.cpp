#include "base/posix/fifo.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::posix {
namespace {

/// Removes a pipe that was left there.
Result<void> make_room(const std::string& path) {
  struct stat about{};
  if (::lstat(path.c_str(), &about) != 0) return {};
  if (!S_ISFIFO(about.st_mode))
    return fail(Errc::InvalidArgument, path + " is there already, and is no named pipe");
  // Only one that somebody reads can be opened so.
  if (const Fd used(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)); used)
    return fail(Errc::InvalidArgument, path + " is read by another process");
  if (::unlink(path.c_str()) != 0) return pass(errno_error(errno, "remove " + path));
  return {};
}

}  // namespace

Result<Fifo> Fifo::make(const std::string& path) {
  if (auto made = make_room(path); !made) return pass(made.error());
  constexpr mode_t kMode = 0600;
  if (::mkfifo(path.c_str(), kMode) != 0)
    return pass(errno_error(errno, "make the named pipe " + path));
  // A writer of our own: without one each reading would end when the last client leaves.
  Fd fd(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) {
    const auto error = errno;
    ::unlink(path.c_str());
    return pass(errno_error(error, "open " + path));
  }
  return Fifo(path, std::move(fd));
}

Fifo::~Fifo() {
  if (fd_) ::unlink(path_.c_str());
}

}  // namespace muster::posix

#include "base/posix/stream.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace muster::posix {

bool is_terminal(int fd) { return ::isatty(fd) == 1; }

bool is_same_file(int one, int other) {
  struct stat first{}, second{};
  return ::fstat(one, &first) == 0 && ::fstat(other, &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

Unblocking::Unblocking(int fd) : piece_(PIPE_BUF) {
  // Below the number of bytes at which the kernel calls a terminal's buffer full.
  constexpr std::size_t kTerminalPiece = 256;
  struct stat about{};
  if (::fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) {
    piece_ = SIZE_MAX;  // Nobody has to make room in a file.
    has_nowait_ = false;
  } else if (is_terminal(fd)) {
    piece_ = kTerminalPiece;
  }
}

Written Unblocking::write(int fd, std::string_view bytes) {
  if (!has_nowait_) return write_piece(fd, bytes);
  constexpr off_t kCurrentPosition = -1;
  const iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  const auto size = ::pwritev2(fd, &part, 1, kCurrentPosition, RWF_NOWAIT);
  if (size >= 0) return {static_cast<std::size_t>(size), 0};
  if (errno == EAGAIN || errno == EINTR) return {};
  if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL) return {0, errno};
  has_nowait_ = false;
  return write_piece(fd, bytes);
}

Written Unblocking::write_piece(int fd, std::string_view bytes) const {
  pollfd waiting{.fd = fd, .events = POLLOUT, .revents = 0};
  if (::poll(&waiting, 1, 0) <= 0) return {};
  const auto size = ::write(fd, bytes.data(), std::min(bytes.size(), piece_));
  if (size >= 0) return {static_cast<std::size_t>(size), 0};
  if (errno == EAGAIN || errno == EINTR) return {};
  return {0, errno};
}

bool wait_writable(int fd, Duration patience) {
  pollfd waiting{.fd = fd, .events = POLLOUT, .revents = 0};
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(patience).count();
  return ::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(milliseconds, INT_MAX))) > 0;
}

bool write_within(int fd, std::string_view bytes, Duration patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  Unblocking how(fd);
  while (!bytes.empty()) {
    const auto result = how.write(fd, bytes);
    if (result.error != 0) return false;
    bytes.remove_prefix(result.written);
    if (result.written > 0) continue;
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= Duration::zero() || !wait_writable(fd, left)) return false;
  }
  return true;
}

ReadNow read_now(int fd, char* buffer, std::size_t capacity) {
  const auto size = ::read(fd, buffer, capacity);
  if (size > 0) return {static_cast<std::size_t>(size), false};
  if (size == 0) return {0, true};
  return {0, errno != EAGAIN && errno != EINTR};
}

ReadNow read_shared(int fd, char* buffer, std::size_t capacity) {
  constexpr off_t kCurrentPosition = -1;
  const iovec part{.iov_base = buffer, .iov_len = capacity};
  const auto size = ::preadv2(fd, &part, 1, kCurrentPosition, RWF_NOWAIT);
  if (size > 0) return {static_cast<std::size_t>(size), false};
  if (size == 0) return {0, true};
  if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL)
    return {0, errno != EAGAIN && errno != EINTR};
  pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
  if (::poll(&waiting, 1, 0) <= 0) return {};  // Somebody else has read it.
  return read_now(fd, buffer, capacity);
}

int write_file(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto size = ::write(fd, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  return 0;
}

Result<Fd> open_log_file(const std::string& path) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!fd) return pass(errno_error(errno, "open log file " + path));
  return fd;
}

Result<Fd> open_null() {
  Fd fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!fd) return pass(errno_error(errno, "open /dev/null"));
  return fd;
}

std::string file_tail(const std::string& path, std::size_t limit) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));  // It may be a FIFO.
  struct stat about{};
  if (!fd || ::fstat(fd.get(), &about) != 0 || !S_ISREG(about.st_mode)) return {};
  const auto size = ::lseek(fd.get(), 0, SEEK_END);
  const auto from = std::max<off_t>(0, size - static_cast<off_t>(limit));
  std::string text(static_cast<std::size_t>(std::max<off_t>(0, size - from)), '\0');
  const auto got = ::pread(fd.get(), text.data(), text.size(), from);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  return text;
}

void set_non_blocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

void enlarge_pipe(int fd, std::size_t size) {
  const int now = ::fcntl(fd, F_GETPIPE_SZ);
  if (now < 0 || static_cast<std::size_t>(now) >= size) return;
  ::fcntl(fd, F_SETPIPE_SZ, static_cast<int>(size));
}

}  // namespace muster::posix

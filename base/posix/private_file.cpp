#include "base/posix/private_file.hpp"

#include "base/posix/fd.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::posix {

Result<std::string> read_private_file(const std::string& path, std::size_t limit) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return pass(errno_error(errno, "open " + path));
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return pass(errno_error(errno, "look at " + path));
  if (!S_ISREG(status.st_mode)) return fail(Errc::InvalidArgument, path + " is no regular file");
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    return fail(Errc::InvalidArgument, path + " belongs to another user");
  }
  constexpr auto kOthers = S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;
  if ((status.st_mode & kOthers) != 0) {
    return fail(Errc::InvalidArgument,
                path + " can be read or written by others than its owner: chmod 600 " + path);
  }
  std::string content(limit + 1, '\0');
  std::size_t size = 0;
  while (size < content.size()) {
    const ssize_t count = ::read(file.get(), content.data() + size, content.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return pass(errno_error(errno, "read " + path));
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  if (size > limit) {
    return fail(Errc::InvalidArgument, path + " has more than " + std::to_string(limit) + " bytes");
  }
  content.resize(size);
  return content;
}

Result<Fd> write_new_file(const std::string& path, std::string_view bytes) {
  constexpr mode_t kMode = 0600;
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kMode));
  if (!file) return pass(errno_error(errno, "make " + path));
  while (!bytes.empty()) {
    const ssize_t count = ::write(file.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return pass(errno_error(errno, "write " + path));
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return file;
}

bool leave_marker(const std::string& path) {
  constexpr mode_t kMode = 0600;
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kMode));
  return static_cast<bool>(file);
}

void remove_marker(const std::string& path) noexcept { ::unlink(path.c_str()); }

}  // namespace muster::posix

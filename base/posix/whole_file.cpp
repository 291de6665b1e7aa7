#include "base/posix/whole_file.hpp"

#include "base/posix/fd.hpp"
#include "base/posix/stream.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::posix {
namespace {

constexpr mode_t kMode = 0666;  // What the umask leaves of it.

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Of a file that is there, with symbolic links followed; else as it is.
std::string real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  return real ? real.get() : path;
}

Result<void> write_to(int fd, const std::string& path, std::string_view content) {
  if (const int error = write_file(fd, content); error != 0)
    return pass(errno_error(error, "write " + path));
  return {};
}

bool is_special(const std::string& path) {
  struct stat about{};
  return ::stat(path.c_str(), &about) == 0 && !S_ISREG(about.st_mode);
}

}  // namespace

Result<void> overwrite_file(const std::string& path, std::string_view content) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return pass(errno_error(errno, "open " + path));
  return write_to(file.get(), path, content);
}

Result<void> replace_file(const std::string& path, std::string_view content) {
  const auto target = real_path(path);
  if (is_special(target)) return overwrite_file(target, content);
  // Of its own name, since the target's may be as long as a name can be.
  const auto temporary = folder_of(target) + "/.muster-" + std::to_string(::getpid()) + ".tmp";
  const Fd file(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kMode));
  if (!file) {
    const auto error = errno;
    if (file_exists(target)) return overwrite_file(target, content);
    return pass(errno_error(error, "make " + target));
  }
  auto written = write_to(file.get(), temporary, content);
  if (written && ::rename(temporary.c_str(), target.c_str()) == 0) return {};
  const auto error = errno;
  ::unlink(temporary.c_str());
  if (!written) return written;
  if (error == EBUSY) return overwrite_file(target, content);  // A mount point.
  return pass(errno_error(error, "rename " + temporary + " to " + target));
}

Result<void> can_replace_file(const std::string& path) {
  struct stat about{};
  if (::stat(path.c_str(), &about) == 0) {
    if (S_ISDIR(about.st_mode)) return pass(errno_error(EISDIR, path));
    if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0) return {};
  }
  const auto folder = folder_of(path);
  if (::stat(folder.c_str(), &about) != 0) return pass(errno_error(errno, folder));
  if (!S_ISDIR(about.st_mode)) return pass(errno_error(ENOTDIR, folder));
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    return pass(errno_error(errno, "make a file in " + folder));
  return {};
}

bool file_exists(const std::string& path) {
  struct stat about{};
  return ::stat(path.c_str(), &about) == 0;
}

}  // namespace muster::posix

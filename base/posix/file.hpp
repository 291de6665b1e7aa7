#pragma once

#include "base/posix/fd.hpp"

#include <cerrno>
#include <cstddef>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::posix {

/// What the kernel says of a file, symbolic links followed.
struct FileFacts {
  enum class Kind { Regular, Directory, Other };
  Kind kind = Kind::Other;
  bool readable = false;           ///< For us, now.
  bool executable = false;         ///< For us, now: false on a file system mounted noexec.
  bool marked_executable = false;  ///< Its mode has an x, be it for others only.
};

/// The error names the path. A broken link is NotFound, like a missing file.
[[nodiscard]] inline Result<FileFacts> look_at(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return pass(errno_error(errno, path));
  FileFacts facts;
  if (S_ISREG(status.st_mode)) facts.kind = FileFacts::Kind::Regular;
  if (S_ISDIR(status.st_mode)) facts.kind = FileFacts::Kind::Directory;
  // With the effective ids, as exec and open do; access() goes by the real ones.
  facts.readable = ::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) == 0;
  facts.executable = ::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0;
  facts.marked_executable = (status.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0;
  return facts;
}

/// The first bytes of a file, at most `limit`. Never waits for a pipe.
[[nodiscard]] inline Result<std::string> read_start(const std::string& path, std::size_t limit) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return pass(errno_error(errno, "open " + path));
  std::string start(limit, '\0');
  std::size_t size = 0;
  while (size < limit) {
    const ssize_t count = ::read(file.get(), start.data() + size, limit - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return pass(errno_error(errno, "read " + path));
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  start.resize(size);
  return start;
}

}  // namespace muster::posix

#include "base/posix/room.hpp"

#include <sys/statvfs.h>

namespace muster::posix {

std::optional<FileSystemRoom> room_at(const std::string& path) {
  struct statvfs about{};
  if (::statvfs(path.c_str(), &about) != 0) return std::nullopt;
  const std::uint64_t block = about.f_frsize;
  return FileSystemRoom{.size = block * about.f_blocks, .free = block * about.f_bavail};
}

}  // namespace muster::posix

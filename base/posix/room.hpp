#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace muster::posix {

/// Bytes of the file system at a path, and those that are free to us.
struct FileSystemRoom {
  std::uint64_t size = 0;
  std::uint64_t free = 0;
};

/// nullopt where the path is missing.
[[nodiscard]] std::optional<FileSystemRoom> room_at(const std::string& path);

}  // namespace muster::posix

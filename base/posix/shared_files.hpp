#pragma once

#include "base/error.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

/// The files of a folder in memory, /dev/shm: shared memory by name, which outlives who made it.
namespace muster::posix {

struct SharedFile {
  std::string name;
  std::uint64_t inode = 0;  ///< Another one, if the file was made anew.
  friend auto operator<=>(const SharedFile&, const SharedFile&) = default;
};

/// More than that are not looked at.
constexpr std::size_t kMostSharedFiles = 65536;

/// The regular files there that belong to our user.
[[nodiscard]] Result<std::set<SharedFile>> own_shared_files(const std::string& folder);

/// Removes one that no process has open or mapped, whoever it is and in whatever container: the
/// kernel grants a write lease on such a file alone (on one in memory since Linux 5.3). False: it
/// is still there.
[[nodiscard]] bool remove_unheld(const std::string& folder, const SharedFile& file);

}  // namespace muster::posix

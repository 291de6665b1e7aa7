#pragma once

#include "base/error.hpp"
#include "base/posix/fd.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::posix {

/// The whole of a regular file that nobody but its owner, this process's user or root, can read or
/// write: for secrets. At most `limit` bytes. Errors name the path and what is wrong with it.
[[nodiscard]] Result<std::string> read_private_file(const std::string& path, std::size_t limit);

/// Makes a file, mode 0600, with these bytes, open for reading and writing. Fails where there is
/// one.
[[nodiscard]] Result<Fd> write_new_file(const std::string& path, std::string_view bytes);

/// Leaves an empty file, mode 0600, for whoever comes later. False: it was there already, or can't
/// be made.
[[nodiscard]] bool leave_marker(const std::string& path);

void remove_marker(const std::string& path) noexcept;

}  // namespace muster::posix

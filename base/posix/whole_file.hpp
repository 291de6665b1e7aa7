#pragma once

#include "base/error.hpp"

#include <string>
#include <string_view>

namespace muster::posix {

/// Puts a file there that readers see whole or not at all, in place of one that may be there. What
/// can't be replaced (a device, a file that is mounted by itself, one in a folder that is not ours)
/// is written over.
[[nodiscard]] Result<void> replace_file(const std::string& path, std::string_view content);

/// Writes over a file that is there. Never waits for the reader of a pipe.
[[nodiscard]] Result<void> overwrite_file(const std::string& path, std::string_view content);

/// Whether replace_file() may hope to succeed: for those who should know before the work is done.
[[nodiscard]] Result<void> can_replace_file(const std::string& path);

[[nodiscard]] bool file_exists(const std::string& path);

}  // namespace muster::posix

#pragma once

#include "base/error.hpp"

#include <string>

namespace muster::posix {

/// Makes a new folder of that mode (less the umask) whose name is `prefix` and eight random
/// characters.
[[nodiscard]] Result<std::string> make_unique_folder(const std::string& prefix,
                                                     unsigned mode = 0755);
[[nodiscard]] Result<void> make_folder(const std::string& path, unsigned mode);

/// This machine's name up to the first dot.
[[nodiscard]] std::string short_host_name();

}  // namespace muster::posix

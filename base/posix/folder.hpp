#pragma once

#include "base/error.hpp"

#include <string>

namespace muster::posix {

/// Makes a new folder of mode 0755 (less the umask) whose name is `prefix` and eight random
/// characters.
[[nodiscard]] Result<std::string> make_unique_folder(const std::string& prefix);

/// This machine's name up to the first dot.
[[nodiscard]] std::string short_host_name();

}  // namespace muster::posix

#pragma once

#include "base/error.hpp"
#include "base/posix/fd.hpp"

#include <chrono>
#include <string>

namespace muster::posix {

/// Makes a new folder of that mode (less the umask) whose name is `prefix` and eight random
/// characters.
[[nodiscard]] Result<std::string> make_unique_folder(const std::string& prefix,
                                                     unsigned mode = 0755);
[[nodiscard]] Result<void> make_folder(const std::string& path, unsigned mode);

/// Holds a folder while it lives: folders that nobody holds are fair game for remove_unheld.
[[nodiscard]] Result<Fd> hold_folder(const std::string& path);

/// Removes the folders of this user in `parent` whose names begin with `prefix` and that no process
/// holds: those who made them were killed. Younger ones are left, since whoever makes one has yet
/// to hold it.
void remove_unheld(const std::string& parent, const std::string& prefix,
                   std::chrono::seconds young = std::chrono::seconds(60));

/// This machine's name up to the first dot.
[[nodiscard]] std::string short_host_name();

}  // namespace muster::posix

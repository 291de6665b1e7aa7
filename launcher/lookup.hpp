#pragma once

#include "launcher/environment.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace muster::launcher {

/// Whether the path leads to a file that we may execute.
[[nodiscard]] bool is_program(const std::string& path);

/// Where a shell finds a name without a slash, as a path with one: the first program of that name
/// in the folders of PATH, an empty folder being the current one.
[[nodiscard]] std::optional<std::string> find_on_path(std::string_view name,
                                                      const Environment& environment);

/// The folders that find_on_path() looks through, as PATH spells them.
[[nodiscard]] std::string search_path(const Environment& environment);

}  // namespace muster::launcher

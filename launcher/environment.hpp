#pragma once

#include <map>
#include <optional>
#include <string>

namespace muster::launcher {

/// The environment variables that main read, by name.
using Environment = std::map<std::string, std::string>;

/// The value of a variable; nullopt where it is unset or empty.
[[nodiscard]] std::optional<std::string> value_of(const Environment& environment,
                                                  const std::string& name);

}  // namespace muster::launcher

#pragma once

#include "base/error.hpp"
#include "launcher/options.hpp"

#include <string_view>

namespace muster::launcher {

/// Gives the options what a flag says. Fails on a value that makes no sense, naming it, its origin
/// and what is right.
[[nodiscard]] Result<void> apply(std::string_view flag, const Given& given,
                                 const Environment& environment, const Machine& machine,
                                 Options& options);

/// Whether apply() knows the flag.
[[nodiscard]] bool can_apply(std::string_view flag);

}  // namespace muster::launcher

#pragma once

#include "base/error.hpp"
#include "launcher/options.hpp"

#include <string>
#include <string_view>

namespace muster::launcher {

/// A value that was given to a flag.
struct Given {
  std::string value;   ///< Of a switch: `1` for on.
  std::string origin;  ///< `--max-restarts` or `PET_MAX_RESTARTS`: whom to blame.
};

/// Gives the options what a flag says. Fails on a value that makes no sense, naming it, its origin
/// and what is right.
[[nodiscard]] Result<void> apply(std::string_view flag, const Given& given,
                                 const Environment& environment, const Machine& machine,
                                 Options& options);

/// Whether apply() knows the flag.
[[nodiscard]] bool can_apply(std::string_view flag);

}  // namespace muster::launcher

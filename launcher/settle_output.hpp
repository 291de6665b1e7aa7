#pragma once

#include "base/error.hpp"
#include "launcher/options.hpp"

namespace muster::launcher {

/// What no single flag of output can tell: refuses what can't be had together, and says what has no
/// effect.
[[nodiscard]] Result<void> settle_output(Options& options);

}  // namespace muster::launcher

#pragma once

#include "base/error.hpp"
#include "launcher/apply.hpp"
#include "launcher/options.hpp"

namespace muster::launcher {

/// `--rdzv-conf k=v,k=v`: what has a meaning here is used, the rest of torchrun's keys is said to
/// have none, and so is a key that torchrun does not know either (it takes any). Fails on what
/// can't be read, and on keys that are flags.
[[nodiscard]] Result<void> apply_rdzv_conf(const Given& given, Options& options);

}  // namespace muster::launcher

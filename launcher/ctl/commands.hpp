#pragma once

#include "base/error.hpp"
#include "launcher/ctl/find_server.hpp"
#include "launcher/ctl/options.hpp"

namespace muster::ctl {

/// Does what was asked, and prints what came of it.
[[nodiscard]] Result<void> run(const Options& options, const FoundServer& server);

}  // namespace muster::ctl

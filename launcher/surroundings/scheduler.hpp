#pragma once

#include "launcher/environment.hpp"

#include <string_view>

namespace muster::launcher {

/// The scheduler that started us, by its variables: "Slurm", "Kubernetes", ...; empty: none that we
/// know. Each ends a job by SIGTERM and, a while later, SIGKILL.
[[nodiscard]] std::string_view scheduler_of(const Environment& environment);

}  // namespace muster::launcher

#pragma once

#include "agent/run/worker_environment.hpp"
#include "base/error.hpp"
#include "launcher/options.hpp"
#include "launcher/program.hpp"

#include <string>

namespace muster::launcher {

/// What `--explain` prints: every flag's value and where it comes from, what the surroundings say,
/// what it adds up to, and the command and environment of each worker. Nothing is looked up for it:
/// what only the rendezvous or the start decides stands in angle brackets.
[[nodiscard]] std::string explanation(const Options& options, const Result<Program>& program,
                                      const agent::EnvironmentSettings& workers);

}  // namespace muster::launcher

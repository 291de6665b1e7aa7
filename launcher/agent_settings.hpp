#pragma once

#include "agent/run/agent.hpp"
#include "base/log/log.hpp"
#include "launcher/options.hpp"
#include "launcher/program.hpp"

#include <optional>
#include <string>

/// What the command line and the environment mean for the agent.
namespace muster::launcher {

/// All that they tell: not where the store is, what is shared on this machine, nor the log folder.
[[nodiscard]] agent::AgentSettings agent_settings(const Options& options, const Program& program,
                                                  const Environment& environment);

/// Settles what this machine's limits leave to the workers and to their store.
void share_machine(agent::AgentSettings& settings, const Options& options,
                   const Environment& environment, Logger& logger);

/// The folder for logs and error files: where --log-dir says, or a temporary one where --redirects
/// needs files.
[[nodiscard]] Result<std::optional<agent::LogFolder>> make_log_folder(
    const Options& options, const Environment& environment, const std::string& id);

/// Says what is in the log folder, or that there is none where one might be expected.
void announce_logs(const Options& options, const std::string& folder, Logger& logger);

}  // namespace muster::launcher

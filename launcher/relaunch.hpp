#pragma once

#include "launcher/surroundings/surroundings.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// In an allocation of several machines srun starts the launchers, and muster has srun do it: its
/// process becomes srun's, so that signals and exit code pass.
namespace muster::launcher {

/// Set for those launchers, to the scheduler's job: it is done once.
constexpr const char* kRelaunchedVariable = "MUSTER_RELAUNCHED";

/// `srun --nodes=2 ...`: one launcher on each of so many of its machines, with all processors that
/// the job has there.
[[nodiscard]] std::vector<std::string> srun_words(const BareAllocation& allocation,
                                                  std::uint32_t nodes);

/// Our environment (NAME=value) for that srun: without what sbatch was told of tasks and their
/// devices, since a launcher is no such task, and of variables to leave out; with what makes it
/// pass an interrupt on at once.
[[nodiscard]] std::vector<std::string> srun_environment(std::vector<std::string> entries,
                                                        const BareAllocation& allocation);

/// The words as a shell takes them.
[[nodiscard]] std::string as_typed(const std::vector<std::string>& words);

}  // namespace muster::launcher

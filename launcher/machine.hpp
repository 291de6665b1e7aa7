#pragma once

#include "launcher/options.hpp"

#include <cstdint>
#include <filesystem>

namespace muster::launcher {

/// How many of nvidia0, nvidia1... the folder of device files has; 0 where it can't be read.
[[nodiscard]] std::uint32_t count_nvidia_devices(const std::filesystem::path& folder);

/// The machine that we run on.
[[nodiscard]] Machine this_machine();

}  // namespace muster::launcher

#pragma once

#include "base/error.hpp"
#include "launcher/options.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace muster::launcher {

/// How many of nvidia0, nvidia1... the folder of device files has; 0 where it can't be read.
[[nodiscard]] std::uint32_t count_nvidia_devices(const std::filesystem::path& folder);

/// What flags and variables name beside programs: lists and settings.
constexpr std::size_t kLargestFile = 1024 * 1024;

/// The whole of a file of at most kLargestFile.
[[nodiscard]] Result<std::string> read_small_file(const std::string& path);

/// The machine that we run on.
[[nodiscard]] Machine this_machine();

}  // namespace muster::launcher

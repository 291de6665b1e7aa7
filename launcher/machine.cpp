#include "launcher/machine.hpp"

#include "base/posix/file.hpp"
#include "base/posix/limits.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <system_error>

namespace muster::launcher {

std::uint32_t count_nvidia_devices(const std::filesystem::path& folder) {
  constexpr std::string_view kPrefix = "nvidia";
  std::uint32_t count = 0;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  while (!error && entry != std::filesystem::directory_iterator()) {
    const std::string name = entry->path().filename().string();
    // Not nvidiactl, nvidia-uvm, nvidia-modeset.
    const bool numbered = name.size() > kPrefix.size() && name.starts_with(kPrefix) &&
                          std::all_of(name.begin() + kPrefix.size(), name.end(),
                                      [](char c) { return c >= '0' && c <= '9'; });
    if (numbered) ++count;
    entry.increment(error);
  }
  return count;
}

Result<std::string> read_small_file(const std::string& path) {
  auto text = posix::read_start(path, kLargestFile + 1);
  if (text && text->size() > kLargestFile) {
    return fail(Errc::InvalidArgument,
                path + " has more than " + std::to_string(kLargestFile) + " bytes");
  }
  return text;
}

Machine this_machine() {
  return {.cpus = posix::usable_cpus,
          .nvidia_devices = [] { return count_nvidia_devices("/dev"); },
          .read_file = read_small_file};
}

}  // namespace muster::launcher

#include "agent/run/shared_memory.hpp"

#include "base/text.hpp"

#include <string_view>
#include <utility>

namespace muster::agent {
namespace {

constexpr std::string_view kOurs = "muster-";
/// Of the files that were removed, in the log.
constexpr std::size_t kMostNamed = 5;

}  // namespace

std::optional<std::set<posix::SharedFile>> SharedMemory::list() {
  auto files = posix::own_shared_files(folder_);
  if (files) return *std::move(files);
  logger_.warn("--clean-shm: {}; what this round leaves there stays", files.error().message);
  return std::nullopt;
}

void SharedMemory::begin_round() { before_ = list(); }

void SharedMemory::end_round() {
  const auto before = std::exchange(before_, std::nullopt);
  const auto after = before ? list() : std::nullopt;
  if (!after) return;
  std::size_t removed = 0, held = 0;
  std::string names;
  for (const auto& file : *after) {
    if (before->contains(file) || file.name.starts_with(kOurs)) continue;
    if (!posix::remove_unheld(folder_, file)) {
      ++held;
    } else if (++removed <= kMostNamed) {
      names += (names.empty() ? "" : " ") + printable(file.name);
    }
  }
  if (removed > 0) {
    logger_.info("removed {} files that the workers left in {}: {}{}", removed, folder_, names,
                 removed > kMostNamed ? " ..." : "");
  }
  if (held > 0) {
    logger_.info("{} new files in {} stay: a process uses them, or the kernel can't tell", held,
                 folder_);
  }
}

}  // namespace muster::agent

#include "base/posix/workers_cgroup.hpp"

#include "base/posix/cgroup.hpp"

#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::posix {
namespace {

constexpr mode_t kMode = 0755;

/// The folder of our own cgroup in the hierarchy of v2; empty: there is none.
std::string own_folder() {
  const auto groups = cgroups_of(::getpid(), {});
  return groups.empty() ? std::string() : groups.front().folder;
}

std::string name_prefix(int maker) { return "muster-" + std::to_string(maker) + "-"; }

void kill_all_in(int folder) {
  const Fd file(::openat(folder, "cgroup.kill", O_WRONLY | O_CLOEXEC));
  if (file) (void)!::write(file.get(), "1", 1);
}

}  // namespace

std::optional<WorkersCgroup> WorkersCgroup::make(std::uint64_t round) {
  const auto own = own_folder();
  if (own.empty()) return std::nullopt;
  auto path = own + "/" + name_prefix(::getpid()) + std::to_string(round);
  if (::mkdir(path.c_str(), kMode) != 0) return std::nullopt;
  Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::faccessat(folder.get(), "cgroup.kill", W_OK, 0) != 0) {
    ::rmdir(path.c_str());
    return std::nullopt;
  }
  return WorkersCgroup(std::move(path), std::move(folder));
}

WorkersCgroup::~WorkersCgroup() {
  if (folder_) ::rmdir(path_.c_str());
}

void WorkersCgroup::kill() noexcept { kill_all_in(folder_.get()); }

void end_workers_cgroups_of(int maker) {
  const auto own = own_folder();
  if (own.empty()) return;
  DIR* const listing = ::opendir(own.c_str());
  if (listing == nullptr) return;
  const auto prefix = name_prefix(maker);
  while (const dirent* entry = ::readdir(listing)) {
    if (!std::string_view(entry->d_name).starts_with(prefix)) continue;
    const Fd folder(::openat(::dirfd(listing), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder) kill_all_in(folder.get());
    ::unlinkat(::dirfd(listing), entry->d_name, AT_REMOVEDIR);
  }
  ::closedir(listing);
}

}  // namespace muster::posix

#include "base/posix/folder.hpp"

#include "base/posix/fd.hpp"

#include <cerrno>
#include <cstdint>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <string_view>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace muster::posix {

Result<std::string> make_unique_folder(const std::string& prefix, unsigned mode) {
  constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyz012345";
  constexpr int kTries = 100;
  for (int tries = 0; tries < kTries; ++tries) {
    std::uint64_t random = 0;
    if (::getrandom(&random, sizeof random, 0) < 0)
      return pass(errno_error(errno, "get random bytes"));
    std::string path = prefix;
    for (int i = 0; i < 8; ++i, random >>= 5) path += kLetters[random & 31];
    if (::mkdir(path.c_str(), mode) == 0) return path;
    if (errno != EEXIST) return pass(errno_error(errno, "make folder " + path));
  }
  return pass(errno_error(EEXIST, "make a folder " + prefix + "*"));
}

Result<void> make_folder(const std::string& path, unsigned mode) {
  if (::mkdir(path.c_str(), mode) == 0) return {};
  return pass(errno_error(errno, "make folder " + path));
}

Result<Fd> hold_folder(const std::string& path) {
  Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder) return pass(errno_error(errno, "open folder " + path));
  if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0)
    return pass(errno_error(errno, "hold folder " + path));
  return folder;
}

void remove_unheld(const std::string& parent, const std::string& prefix,
                   std::chrono::seconds young) {
  DIR* const listing = ::opendir(parent.c_str());
  if (listing == nullptr) return;
  while (const dirent* entry = ::readdir(listing)) {
    if (!std::string_view(entry->d_name).starts_with(prefix)) continue;
    struct stat about{};
    if (::fstatat(::dirfd(listing), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISDIR(about.st_mode) || about.st_uid != ::geteuid()) continue;
    if (std::time(nullptr) - about.st_ctime < young.count()) continue;
    const auto path = parent + "/" + entry->d_name;
    if (const auto held = hold_folder(path); !held) continue;
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  ::closedir(listing);
}

std::string short_host_name() {
  char name[256] = "localhost";
  ::gethostname(name, sizeof name - 1);
  const std::string whole = name;
  return whole.substr(0, whole.find('.'));
}

}  // namespace muster::posix

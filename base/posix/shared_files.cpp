#include "base/posix/shared_files.hpp"

#include "base/posix/fd.hpp"

#include <cerrno>
#include <csignal>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::posix {
namespace {

bool is_ours(const struct stat& about) {
  return S_ISREG(about.st_mode) && about.st_uid == ::geteuid();
}

}  // namespace

Result<std::set<SharedFile>> own_shared_files(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(folder.c_str()), ::closedir);
  if (!listing) return pass(errno_error(errno, "read " + folder));
  std::set<SharedFile> files;
  while (const dirent* entry = ::readdir(listing.get())) {
    struct stat about{};
    if (::fstatat(::dirfd(listing.get()), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 ||
        !is_ours(about)) {
      continue;
    }
    if (files.size() == kMostSharedFiles) {
      return fail(Errc::Unavailable,
                  folder + " has more than " + std::to_string(kMostSharedFiles) + " files");
    }
    files.insert({entry->d_name, about.st_ino});
  }
  return files;
}

bool remove_unheld(const std::string& folder, const SharedFile& file) {
  const auto path = folder + "/" + file.name;
  const Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct stat about{};
  const bool is_it =
      fd && ::fstat(fd.get(), &about) == 0 && is_ours(about) && about.st_ino == file.inode;
  // Whoever opens it while we have the lease has us told by a signal: not by SIGIO, which kills.
  return is_it && ::fcntl(fd.get(), F_SETSIG, SIGURG) == 0 &&
         ::fcntl(fd.get(), F_SETLEASE, F_WRLCK) == 0 && ::unlink(path.c_str()) == 0;
}

}  // namespace muster::posix

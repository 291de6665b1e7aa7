#include "base/posix/locked_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace muster::posix {
namespace {

bool lock_now(int fd) { return ::flock(fd, LOCK_EX | LOCK_NB) == 0; }

/// Whether a LockedFile holds this file. By a shared lock, which goes when it is closed: two that
/// look at one time must not take each other for the holder.
bool is_held(int fd) { return ::flock(fd, LOCK_SH | LOCK_NB) != 0; }

bool is_same_file(int fd, int folder, const char* name) {
  struct stat open{};
  struct stat named{};
  return ::fstat(fd, &open) == 0 && ::fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

Result<void> write_whole(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const auto size = ::write(fd, content.data(), content.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return pass(errno_error(errno, "write " + path));
    content.remove_prefix(static_cast<std::size_t>(size));
  }
  return {};
}

std::string read_whole(int fd) {
  std::array<char, PrivateFolder::kMaxContent> room;
  std::size_t size = 0;
  while (size < room.size()) {
    const auto count = ::read(fd, room.data() + size, room.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    size += static_cast<std::size_t>(count);
  }
  return {room.data(), size};
}

}  // namespace

std::string user_id() { return std::to_string(::geteuid()); }

Result<PrivateFolder> PrivateFolder::make(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return pass(errno_error(errno, "make folder " + path));
  }
  return open(path);
}

Result<PrivateFolder> PrivateFolder::open(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) {
    const int error = errno;
    auto failure = errno_error(error, "open folder " + path);
    if (error == ELOOP || error == ENOTDIR) {
      failure.message += "; it must be a folder itself, no symbolic link: remove it";
    }
    return pass(std::move(failure));
  }
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return pass(errno_error(errno, "look at folder " + path));
  if (status.st_uid != ::geteuid()) {
    return fail(Errc::InvalidArgument, "folder " + path + " belongs to user " +
                                           std::to_string(status.st_uid) + ", not to " + user_id() +
                                           ": it can't be trusted");
  }
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    char mode[8];
    std::snprintf(mode, sizeof mode, "0%03o", static_cast<unsigned>(status.st_mode) & 0777U);
    return fail(Errc::InvalidArgument, "folder " + path + " has mode " + mode +
                                           ", others may enter it: it must have 0700");
  }
  return PrivateFolder(path, std::move(fd));
}

Result<std::vector<PrivateFolder::File>> PrivateFolder::files(const std::string& suffix) const {
  const int copy = ::openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const stream = copy < 0 ? nullptr : ::fdopendir(copy);
  if (stream == nullptr) {
    const int error = errno;
    const Fd closed(copy);
    return pass(errno_error(error, "list folder " + path_));
  }
  std::vector<File> found;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string name = entry->d_name;
    if (!name.ends_with(suffix)) continue;
    const Fd file(
        ::openat(fd_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat status{};
    if (!file || ::fstat(file.get(), &status) != 0) continue;  // Gone meanwhile, or a link.
    if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) continue;
    const bool in_use = is_held(file.get());
    found.push_back({.name = name, .content = read_whole(file.get()), .in_use = in_use});
  }
  ::closedir(stream);
  std::ranges::sort(found, {}, &File::name);
  return found;
}

void PrivateFolder::remove_unused(const std::string& name) const {
  const Fd file(::openat(fd_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file || is_held(file.get())) return;
  if (is_same_file(file.get(), fd_.get(), name.c_str())) ::unlinkat(fd_.get(), name.c_str(), 0);
}

Result<LockedFile> LockedFile::create(const PrivateFolder& folder, const std::string& name,
                                      const std::string& content) {
  const std::string path = folder.path() + "/" + name;
  const std::string draft = name + ".new";
  ::unlinkat(folder.descriptor(), draft.c_str(), 0);
  Fd fd(::openat(folder.descriptor(), draft.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return pass(errno_error(errno, "make file " + path));
  LockedFile made(folder.path() + "/" + draft, std::move(fd));
  if (!lock_now(made.fd_.get())) return pass(errno_error(errno, "lock " + path));
  if (const auto written = write_whole(made.fd_.get(), content, path); !written) {
    return pass(written.error());
  }
  if (::renameat(folder.descriptor(), draft.c_str(), folder.descriptor(), name.c_str()) != 0) {
    return pass(errno_error(errno, "make file " + path));
  }
  made.path_ = path;
  return made;
}

LockedFile& LockedFile::operator=(LockedFile&& other) noexcept {
  remove();
  path_ = std::move(other.path_);
  fd_ = std::move(other.fd_);
  return *this;
}

LockedFile::~LockedFile() { remove(); }

void LockedFile::remove() noexcept {
  if (fd_ && is_same_file(fd_.get(), AT_FDCWD, path_.c_str())) ::unlink(path_.c_str());
}

}  // namespace muster::posix

#pragma once

#include "base/error.hpp"
#include "base/posix/fd.hpp"

#include <string>
#include <vector>

namespace muster::posix {

/// The effective user's id, as text.
[[nodiscard]] std::string user_id();

/// A folder that only its owner, this process's user, can enter or list. Move-only.
class PrivateFolder {
 public:
  /// Makes it, mode 0700, where it is missing (not its parents). One that belongs to somebody else,
  /// lets others in, or is a symbolic link is InvalidArgument: who can put files there could name a
  /// server of his own.
  [[nodiscard]] static Result<PrivateFolder> make(const std::string& path);
  /// As it is: NotFound where it is missing.
  [[nodiscard]] static Result<PrivateFolder> open(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int descriptor() const { return fd_.get(); }

  struct File {
    std::string name;
    std::string content;  ///< At most kMaxContent bytes.
    bool in_use = false;  ///< A process that lives holds its lock.
  };
  static constexpr std::size_t kMaxContent = 4096;

  /// Regular files of ours whose names end in `suffix`, by name.
  [[nodiscard]] Result<std::vector<File>> files(const std::string& suffix) const;
  /// Removes a file that no process holds; does nothing where one does, or it is gone.
  void remove_unused(const std::string& name) const;

 private:
  PrivateFolder(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  std::string path_;
  Fd fd_;
};

/// A file that is locked for as long as this object lives, and no longer than the process: forked
/// workers that exec lose it. Removed at the end, if it is still the one that was made. Move-only.
class LockedFile {
 public:
  /// Mode 0600. It appears whole and locked, or not at all; a file of that name is replaced.
  [[nodiscard]] static Result<LockedFile> create(const PrivateFolder& folder,
                                                 const std::string& name,
                                                 const std::string& content);
  LockedFile(LockedFile&&) noexcept = default;
  LockedFile& operator=(LockedFile&& other) noexcept;
  ~LockedFile();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  LockedFile(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  void remove() noexcept;
  std::string path_;
  Fd fd_;  // None: there is nothing to remove.
};

}  // namespace muster::posix

#pragma once

#include "base/error.hpp"
#include "base/posix/fd.hpp"
#include "base/posix/shared_note.hpp"

#include <span>
#include <string>

namespace muster::agent {

/// A folder of mode 0700 for what an agent and its workers share while the job runs. It goes with
/// this object, or, when the agent dies, with the keeper, which finds its path in the note. Where
/// both were killed in one instant the next agent of the same user removes it.
class PrivateFolder {
 public:
  /// In the first of `roots` where one can be made; fails with the reasons of all. `note` outlives
  /// it.
  [[nodiscard]] static Result<PrivateFolder> create(std::span<const std::string> roots,
                                                    const posix::SharedNote& note);
  PrivateFolder(PrivateFolder&& other) noexcept;
  PrivateFolder& operator=(PrivateFolder&&) = delete;
  ~PrivateFolder();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  PrivateFolder(std::string path, const posix::SharedNote& note);
  std::string path_;  // Empty: moved from.
  const posix::SharedNote* note_;
  posix::Fd held_;
};

/// Of an agent that has died. Nothing happens where it had none.
void remove_private_folder(const posix::SharedNote& note);

}  // namespace muster::agent

#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>

namespace muster::agent {

/// The folder of a job's worker logs on this node: `<base>/<id>_<host>_<random>/attempt_N/<local
/// rank>/`, with `stdout.log`, `stderr.log` and `error.json` in each. Nodes on a shared file system
/// never meet in one; every attempt is kept.
class LogFolder {
 public:
  /// Makes the folder, `base` with it. `name` is a file name already. Fails where that can't be
  /// written to.
  [[nodiscard]] static Result<LogFolder> create(const std::string& base, const std::string& name);

  [[nodiscard]] const std::string& path() const { return path_; }

  /// Makes the folder of one attempt and returns it.
  [[nodiscard]] Result<std::string> attempt(std::uint32_t attempt) const;
  /// Makes the folder of one worker in one attempt and returns it.
  [[nodiscard]] Result<std::string> worker(std::uint32_t attempt,
                                           const std::string& local_rank) const;

 private:
  explicit LogFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace muster::agent

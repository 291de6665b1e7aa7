#pragma once

#include "base/log/log.hpp"
#include "base/posix/shared_files.hpp"

#include <optional>
#include <set>
#include <string>
#include <utility>

namespace muster::agent {

/// Removes what a round leaves in shared memory (`--clean-shm`), so that the next one neither finds
/// the name taken nor the memory used up: files of our user that appeared while it ran, and that no
/// process has open or mapped. Ours stay. Loop thread only.
class SharedMemory {
 public:
  SharedMemory(std::string folder, Logger& logger) : folder_(std::move(folder)), logger_(logger) {}

  /// Before the first worker starts.
  void begin_round();
  /// When nothing of the round runs any more.
  void end_round();

 private:
  std::optional<std::set<posix::SharedFile>> list();

  std::string folder_;
  Logger& logger_;
  std::optional<std::set<posix::SharedFile>> before_;  // None: no round runs, or it is not known.
};

}  // namespace muster::agent

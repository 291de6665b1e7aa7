#pragma once

#include "base/posix/fd.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace muster::posix {

/// A cgroup (v2) below our own in which a round's workers are started, so that all that descends
/// from them can be killed in one stroke (cgroup.kill), however fast it forks. There is one only
/// where we may make it and the kernel has that file (5.14); walking the tree does without, so
/// whatever fails here costs nothing. Limits and accounting stay those of our own cgroup.
class WorkersCgroup {
 public:
  /// nullopt: none can be made.
  [[nodiscard]] static std::optional<WorkersCgroup> make(std::uint64_t round);

  WorkersCgroup(WorkersCgroup&&) noexcept = default;
  WorkersCgroup& operator=(WorkersCgroup&&) = delete;
  ~WorkersCgroup();  ///< Removes it, unless something in it survives SIGKILL.

  /// Of its folder, for Command::cgroup.
  [[nodiscard]] int descriptor() const noexcept { return folder_.get(); }
  /// SIGKILL to all that is in it.
  void kill() noexcept;

 private:
  WorkersCgroup(std::string path, Fd folder) : path_(std::move(path)), folder_(std::move(folder)) {}
  std::string path_;
  Fd folder_;
};

/// Kills what is in the cgroups that process `maker` left, and removes them.
void end_workers_cgroups_of(int maker);

}  // namespace muster::posix

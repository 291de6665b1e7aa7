#pragma once

#include "base/exit_status.hpp"
#include "base/posix/fd.hpp"
#include "base/posix/signals.hpp"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <vector>

namespace muster::posix {

/// What to start and with what. Descriptors are borrowed.
struct Command {
  std::string path;                      ///< The file to execute; not looked up on PATH.
  std::vector<std::string> argv;         ///< argv[0] included.
  std::vector<std::string> environment;  ///< NAME=value, the whole of it.
  int in = 0;  ///< Become descriptors 0, 1 and 2; each is that number already, or above 2.
  int out = 1;
  int err = 2;
  SignalSettings signals;            ///< The user's own, which the child gets back.
  std::optional<rlimit> open_files;  ///< RLIMIT_NOFILE of the child; nullopt: ours.
  int cgroup = -1;                   ///< In which to start it (WorkersCgroup); -1: in ours.
  const std::atomic<std::int64_t>* lease_ends = nullptr;  ///< A LeasePage's; nullptr: none.
};

/// Why a child was not started: the step that failed, its errno, and a message for people.
struct SpawnError {
  enum class Step { Fork, Orphaned, LeaseEnded, Descriptors, Exec };
  Step step;
  int error;
  std::string message;
};

/// A child that leads its own session and process group. It dies with the thread that started it
/// (PR_SET_PDEATHSIG), so spawn on one that lives as long as the process should. Move-only. Loop
/// thread only.
class Process {
 public:
  /// Fails if exec does. The child shares our memory until then (as vfork's does), so it costs no
  /// copy of the page tables, and the failing step comes back in memory rather than through a pipe.
  [[nodiscard]] static tl::expected<Process, SpawnError> spawn(const Command& command);
  Process(Process&&) noexcept = default;
  Process& operator=(Process&&) noexcept = default;
  ~Process() = default;  ///< Ends nothing: whoever owns the tree does (process_tree.hpp).

  [[nodiscard]] int pid() const noexcept { return pid_; }
  /// A pidfd: readable once the child has ended. -1: the kernel has none, SIGCHLD tells.
  [[nodiscard]] int watch() const noexcept { return pidfd_.get(); }
  [[nodiscard]] bool ended() const noexcept { return status_.has_value(); }
  /// To the child alone. Does nothing once it was reaped.
  void signal(int number) noexcept;
  /// To its process group. Does nothing once the child was reaped: the group's number may be
  /// another's.
  void signal_group(int number) noexcept;
  /// The signal that has stopped the child, or SIGCONT when it goes on, each told once; nullopt:
  /// nothing new. SIGCHLD says when to ask.
  [[nodiscard]] std::optional<int> stop_or_continue() noexcept;
  /// Reaps the child if it has ended. Never blocks.
  [[nodiscard]] std::optional<ExitStatus> reap();

 private:
  Process(int pid, Fd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  int pid_;
  Fd pidfd_;
  std::optional<ExitStatus> status_;
};

/// A pidfd of a process; fails where it is gone.
[[nodiscard]] Result<Fd> open_pidfd(int pid);

}  // namespace muster::posix

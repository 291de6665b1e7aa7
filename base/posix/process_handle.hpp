#pragma once

#include "base/posix/fd.hpp"

#include <optional>

namespace muster::posix {

/// A process to be signalled, perhaps none of our children. Held by a pidfd its number can not have
/// gone to another process meanwhile; on kernels before 5.3 only the number is held.
class ProcessHandle {
 public:
  /// nullopt: it is gone.
  [[nodiscard]] static std::optional<ProcessHandle> open(int pid);

  /// False where the process is gone, or can't be signalled by us.
  bool signal(int number) const noexcept;

 private:
  ProcessHandle(int pid, Fd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  int pid_;
  Fd pidfd_;
};

/// How another process learns of this one's death: `watch` becomes readable when all of this
/// process's `held` are gone. Where there are pidfds, `watch` is one and `held` is none; else they
/// are the ends of a pipe. After a fork the child closes `held`.
struct DeathWatch {
  Fd watch;
  Fd held;

  [[nodiscard]] static Result<DeathWatch> of_this_process();
};

}  // namespace muster::posix

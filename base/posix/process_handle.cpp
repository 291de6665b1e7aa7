#include "base/posix/process_handle.hpp"

#include "base/posix/process.hpp"

#include <cerrno>
#include <csignal>
#include <sys/syscall.h>
#include <unistd.h>

namespace muster::posix {

std::optional<ProcessHandle> ProcessHandle::open(int pid) {
  auto pidfd = open_pidfd(pid);
  if (pidfd) return ProcessHandle(pid, std::move(*pidfd));
  if (pidfd.error().code == Errc::NotFound || ::kill(pid, 0) != 0) return std::nullopt;
  return ProcessHandle(pid, Fd());
}

bool ProcessHandle::signal(int number) const noexcept {
  if (!pidfd_) return ::kill(pid_, number) == 0;
  return ::syscall(SYS_pidfd_send_signal, pidfd_.get(), number, nullptr, 0) == 0;
}

Result<DeathWatch> DeathWatch::of_this_process() {
  auto pidfd = open_pidfd(::getpid());
  if (pidfd) return DeathWatch{std::move(*pidfd), Fd()};
  auto pipe = make_pipe();
  if (!pipe) return pass(pipe.error());
  return DeathWatch{std::move(pipe->reader), std::move(pipe->writer)};
}

}  // namespace muster::posix

#include "base/posix/process.hpp"

#include "base/posix/fork.hpp"
#include "base/posix/limits.hpp"
#include "base/posix/vfork_child.hpp"

#include <cerrno>
#include <climits>
#include <ctime>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster::posix {
namespace {

constexpr int kChildFailed = 127;
constexpr std::size_t kChildStack = 32 * 1024;

/// The kernel's own sigaction: libc's wrapper keeps books that the child, which shares our memory,
/// would spoil.
struct KernelSigaction {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  std::uint64_t mask;
};

struct Disposition {
  int signal;
  bool ignored;
};

/// All that the child needs, prepared before the fork, and what it leaves behind when it fails.
struct Launch {
  const char* path;
  char* const* argv;
  char* const* environment;
  int descriptors[3];
  const Disposition* dispositions;
  std::size_t disposition_count;
  std::uint64_t blocked;  // Bit n - 1: signal n.
  const rlimit* open_files;
  const std::atomic<std::int64_t>* lease_ends;
  pid_t parent;
  SpawnError::Step step;
  int error;
};

std::uint64_t bit_of(int signal) { return std::uint64_t{1} << (signal - 1); }

#define MUSTER_CHILD_CODE __attribute__((no_sanitize("address", "thread", "undefined")))

MUSTER_CHILD_CODE int give_up(Launch& launch, SpawnError::Step step, int error) {
  launch.step = step;
  launch.error = error;
  ::syscall(SYS_exit_group, kChildFailed);
  __builtin_unreachable();
}

/// Runs in the child, in our memory, on a stack of its own, while we are suspended: system calls
/// only.
MUSTER_CHILD_CODE int run_child(void* argument) {
  Launch& launch = *static_cast<Launch*>(argument);
  ::syscall(SYS_setsid);
  ::syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  // The parent may have died before the line above: then nobody would ever end us.
  if (::syscall(SYS_getppid) != launch.parent) give_up(launch, SpawnError::Step::Orphaned, ESRCH);

  if (launch.lease_ends != nullptr) {
    timespec now{};
    ::syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &now);
    const std::int64_t nanoseconds = now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
    // An atomic of the page itself, not its instrumented wrapper.
    const std::int64_t ends =
        __atomic_load_n(reinterpret_cast<const std::int64_t*>(launch.lease_ends), __ATOMIC_SEQ_CST);
    if (nanoseconds >= ends) give_up(launch, SpawnError::Step::LeaseEnded, ETIME);
  }

  for (int target = 0; target < 3; ++target) {
    const int source = launch.descriptors[target];
    if (source != target && ::syscall(SYS_dup3, source, target, 0) < 0) {
      give_up(launch, SpawnError::Step::Descriptors, errno);
    }
  }
  if (launch.open_files != nullptr) {
    ::syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, launch.open_files, nullptr);
  }
  ::syscall(SYS_close_range, 3U, ~0U, 0U);

  for (std::size_t i = 0; i < launch.disposition_count; ++i) {
    KernelSigaction action{};
    action.handler = launch.dispositions[i].ignored ? SIG_IGN : SIG_DFL;
    ::syscall(SYS_rt_sigaction, launch.dispositions[i].signal, &action, nullptr,
              sizeof action.mask);
  }
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &launch.blocked, nullptr, sizeof launch.blocked);

  ::syscall(SYS_execve, launch.path, launch.argv, launch.environment);
  return give_up(launch, SpawnError::Step::Exec, errno);
}

#undef MUSTER_CHILD_CODE

std::vector<char*> pointers_to(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const auto& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// Only what differs from what the child inherits anyway: handlers are reset by exec, and what a
/// launcher ignores for itself is this short list. The last two are default in every worker, as
/// torchrun's workers have them.
std::vector<Disposition> child_dispositions(const SignalSettings& user) {
  std::vector<Disposition> dispositions;
  for (const int number : {SIGTSTP, SIGTTIN, SIGTTOU}) {
    dispositions.push_back({number, user.ignored.contains(number)});
  }
  for (const int number : user.ignored) dispositions.push_back({number, true});
  for (const int number : {SIGPIPE, SIGXFSZ}) dispositions.push_back({number, false});
  return dispositions;
}

std::string argument_limit_note(const Command& command) {
  const std::string* largest = nullptr;
  std::size_t total = 0;
  for (const auto* list : {&command.argv, &command.environment}) {
    for (const auto& text : *list) {
      total += text.size() + 1;
      if (largest == nullptr || text.size() > largest->size()) largest = &text;
    }
  }
  if (largest == nullptr) return {};
  const std::string name = largest->substr(0, std::min<std::size_t>(largest->find('='), 60));
  return "; arguments and environment are " + std::to_string(total) + " bytes, the largest is '" +
         name + "' with " + std::to_string(largest->size()) + " (the system allows 131072 for one)";
}

SpawnError spawn_error(const Command& command, SpawnError::Step step, int error) {
  std::string message;
  switch (step) {
    case SpawnError::Step::Fork:
      message = errno_error(error, "start a process").message;
      if (error == EAGAIN) message += explain_process_limit();
      break;
    case SpawnError::Step::Orphaned:
      message = "start " + command.path + ": its parent is gone";
      break;
    case SpawnError::Step::LeaseEnded:
      message = "start " + command.path + ": this node may not start workers any more";
      break;
    case SpawnError::Step::Descriptors:
      message = "start " + command.path + ": set up its descriptors: " + errno_text(error);
      break;
    case SpawnError::Step::Exec:
      message = "exec " + command.path + ": " + errno_text(error);
      if (error == E2BIG) message += argument_limit_note(command);
      if (error == ENOEXEC) message += "; a script needs a first line such as '#!/bin/sh'";
      break;
  }
  return {step, error, std::move(message)};
}

}  // namespace

tl::expected<Process, SpawnError> Process::spawn(const Command& command) {
  auto argv = pointers_to(command.argv);
  auto environment = pointers_to(command.environment);
  const auto dispositions = child_dispositions(command.signals);
  Launch launch{
      .path = command.path.c_str(),
      .argv = argv.data(),
      .environment = environment.data(),
      .descriptors = {command.in, command.out, command.err},
      .dispositions = dispositions.data(),
      .disposition_count = dispositions.size(),
      .blocked = 0,
      .open_files = command.open_files ? &*command.open_files : nullptr,
      .lease_ends = command.lease_ends,
      .parent = ::getpid(),
      .step = SpawnError::Step::Fork,
      .error = 0,
  };
  for (int number = 1; number < NSIG; ++number) {
    if (::sigismember(&command.signals.blocked, number) == 1) launch.blocked |= bit_of(number);
  }

  alignas(16) char stack[kChildStack];
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);  // No handler of ours may run in the child.
  const auto child =
      start_vfork_child(run_child, &launch, stack, stack + kChildStack, command.cgroup);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (child.pid < 0) {
    return tl::unexpected(spawn_error(command, SpawnError::Step::Fork, child.error));
  }

  Fd pidfd(child.pidfd);  // The kernel makes it close-on-exec.
  if (launch.error != 0) {
    int ignored_status = 0;
    while (::waitpid(child.pid, &ignored_status, 0) < 0 && errno == EINTR) {
    }
    return tl::unexpected(spawn_error(command, launch.step, launch.error));
  }
  return Process(child.pid, std::move(pidfd));
}

void Process::signal(int number) noexcept {
  if (!ended()) ::kill(pid_, number);  // Until it is reaped, the number is no other's.
}

void Process::signal_group(int number) noexcept {
  if (!ended()) ::kill(-pid_, number);
}

std::optional<int> Process::stop_or_continue() noexcept {
  siginfo_t info{};
  if (ended() ||
      ::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WCONTINUED | WNOHANG) != 0 ||
      info.si_pid == 0) {
    return std::nullopt;
  }
  return info.si_status;
}

std::optional<ExitStatus> Process::reap() {
  if (status_) return status_;
  status_ = reap_child(pid_);
  return status_;
}

Result<Fd> open_pidfd(int pid) {
  const long fd = ::syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0) return pass(errno_error(errno, "watch process " + std::to_string(pid)));
  return Fd(static_cast<int>(fd));
}

}  // namespace muster::posix

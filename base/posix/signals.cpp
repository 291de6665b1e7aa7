#include "base/posix/signals.hpp"

#include <cerrno>
#include <sys/signalfd.h>
#include <unistd.h>

namespace muster::posix {
namespace {

// How a forwarded signal carries its origin in sigval's int: the sender's pid (below 2^22), and one
// bit.
constexpr int kTerminalBit = 1 << 30;
constexpr int kForwardedBit = 1 << 29;
constexpr int kPidMask = (1 << 29) - 1;

}  // namespace

SignalSettings current_signal_settings() {
  SignalSettings settings;
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action{};
    if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) {
      settings.ignored.insert(number);
    }
  }
  ::sigprocmask(SIG_SETMASK, nullptr, &settings.blocked);
  return settings;
}

namespace {

void set_action(int signal, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void ignore_signal(int signal) { set_action(signal, SIG_IGN); }
void default_signal(int signal) { set_action(signal, SIG_DFL); }

Result<SignalSource> SignalSource::open(const std::vector<int>& signals) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : signals) ::sigaddset(&set, number);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  Fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return pass(errno_error(errno, "open a signalfd"));
  return SignalSource(std::move(fd));
}

std::optional<ReceivedSignal> SignalSource::next() {
  signalfd_siginfo info;
  if (::read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info))
    return std::nullopt;
  ReceivedSignal received{.number = static_cast<int>(info.ssi_signo)};
  if (info.ssi_code == SI_QUEUE && (info.ssi_int & kForwardedBit) != 0) {
    received.sender = info.ssi_int & kPidMask;
    received.from_terminal = (info.ssi_int & kTerminalBit) != 0;
  } else {
    received.from_terminal = info.ssi_code == SI_KERNEL;
    received.sender = received.from_terminal ? 0 : static_cast<int>(info.ssi_pid);
  }
  return received;
}

void let_go_on(int pid) { ::kill(pid, SIGCONT); }

void forward_signal(int pid, const ReceivedSignal& signal) {
  sigval value{};
  value.sival_int =
      (signal.sender & kPidMask) | kForwardedBit | (signal.from_terminal ? kTerminalBit : 0);
  if (::sigqueue(pid, signal.number, value) != 0 && errno == EAGAIN) ::kill(pid, signal.number);
}

}  // namespace muster::posix

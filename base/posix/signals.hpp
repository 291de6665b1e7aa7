#pragma once

#include "base/posix/fd.hpp"

#include <csignal>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace muster::posix {

/// What the user's shell gave us: which signals were ignored and which blocked. Workers get it
/// back.
struct SignalSettings {
  std::set<int> ignored;
  sigset_t blocked{};
};

/// Read before anything is changed.
[[nodiscard]] SignalSettings current_signal_settings();

/// Ignores a signal in this process.
void ignore_signal(int signal);
/// Gives a signal its default action back.
void default_signal(int signal);

/// A signal that arrived, with its sender.
struct ReceivedSignal {
  int number = 0;
  int sender = 0;              ///< Process id; 0: the kernel.
  bool from_terminal = false;  ///< A key (Ctrl-C, Ctrl-\) or the terminal's hang-up.
};

/// Blocks a set of signals in the process and delivers them through a descriptor instead
/// (signalfd). Unlike handlers it tells who sent them, and a fork without exec inherits a quiet
/// process.
class SignalSource {
 public:
  [[nodiscard]] static Result<SignalSource> open(const std::vector<int>& signals);

  /// Readable when a signal is there.
  [[nodiscard]] int descriptor() const noexcept { return fd_.get(); }
  /// The next one; nullopt when none is there. Never blocks.
  [[nodiscard]] std::optional<ReceivedSignal> next();

 private:
  explicit SignalSource(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

/// Lets a process go on that was stopped, so that it hears what it was sent.
void let_go_on(int pid);

/// Passes a received signal on, the original sender with it: the receiver's SignalSource tells the
/// same story.
void forward_signal(int pid, const ReceivedSignal& signal);

}  // namespace muster::posix

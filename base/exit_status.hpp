#pragma once

#include <string>

namespace muster {

/// How a process ended: by an exit code, or by a signal.
struct ExitStatus {
  int code = 0;
  int signal = 0;  ///< 0: it exited by itself.
  bool core_dumped = false;

  [[nodiscard]] bool success() const { return code == 0 && signal == 0; }
  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};

/// What a shell says of it: the code, or 128 + the signal's number.
[[nodiscard]] int shell_code(const ExitStatus& status);

/// "SIGKILL" for 9, "SIGRTMIN+1" for the real-time ones, "signal 77" for what has no name here.
[[nodiscard]] std::string signal_name(int signal);

/// "exited with code 3", "was killed by SIGSEGV (signal 11), core dumped".
[[nodiscard]] std::string describe(const ExitStatus& status);

}  // namespace muster

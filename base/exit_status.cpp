#include "base/exit_status.hpp"

#include "base/exit_codes.hpp"

#include <csignal>
#include <cstring>

namespace muster {

int shell_code(const ExitStatus& status) {
  return status.signal != 0 ? kSignalBase + status.signal : status.code;
}

std::string signal_name(int signal) {
  if (const char* name = ::sigabbrev_np(signal); name != nullptr) return std::string("SIG") + name;
  if (signal >= SIGRTMIN && signal <= SIGRTMAX) {
    return "SIGRTMIN+" + std::to_string(signal - SIGRTMIN);
  }
  return "signal " + std::to_string(signal);
}

std::string describe(const ExitStatus& status) {
  if (status.signal == 0) return "exited with code " + std::to_string(status.code);
  std::string text = "was killed by " + signal_name(status.signal) + " (signal " +
                     std::to_string(status.signal) + ")";
  if (status.core_dumped) text += ", core dumped";
  return text;
}

}  // namespace muster

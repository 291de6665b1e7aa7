#include "base/posix/fork.hpp"

#include "base/posix/cgroup.hpp"
#include "base/posix/fd.hpp"
#include "base/posix/limits.hpp"

#include <cerrno>
#include <cstddef>
#include <poll.h>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace muster::posix {

Result<int> fork_process() {
  const int pid = ::fork();
  if (pid >= 0) return pid;
  const int error = errno;
  auto failure = errno_error(error, "fork");
  if (error == EAGAIN) failure.message += explain_process_limit();
  return pass(std::move(failure));
}

void lead_process_group() { ::setpgid(0, 0); }

int own_pid() { return ::getpid(); }

int parent_pid() { return ::getppid(); }

Error become(const std::string& path, const std::vector<std::string>& argv,
             const std::vector<std::string>& environment) {
  const auto pointers = [](const std::vector<std::string>& texts) {
    std::vector<char*> all;
    all.reserve(texts.size() + 1);
    for (const auto& text : texts) all.push_back(const_cast<char*>(text.c_str()));
    all.push_back(nullptr);
    return all;
  };
  ::execve(path.c_str(), pointers(argv).data(), pointers(environment).data());
  return errno_error(errno, "exec " + path);
}

std::optional<ExitStatus> reap_child(int pid) {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0) {
    return std::nullopt;
  }
  ExitStatus status;
  if (info.si_code == CLD_EXITED) {
    status.code = info.si_status;
  } else {
    status.signal = info.si_status;
    status.core_dumped = info.si_code == CLD_DUMPED;
  }
  return status;
}

void wait_readable(std::initializer_list<int> fds) {
  std::vector<pollfd> waiting;
  for (const int fd : fds) waiting.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  while (::poll(waiting.data(), waiting.size(), -1) < 0 && errno == EINTR) {
  }
}

bool has_own_process_namespace() {
  constexpr std::string_view kMachines = "pid:[4026531836]";  // PROC_PID_INIT_INO of every kernel.
  char name[64];
  const auto size = ::readlink("/proc/self/ns/pid", name, sizeof name);
  return size <= 0 || std::string_view(name, static_cast<std::size_t>(size)) != kMachines;
}

std::string process_name(int pid) { return first_line("/proc/" + std::to_string(pid) + "/comm"); }

}  // namespace muster::posix

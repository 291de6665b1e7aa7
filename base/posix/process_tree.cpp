#include "base/posix/process_tree.hpp"

#include "base/posix/fd.hpp"
#include "base/posix/process_handle.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster::posix {

bool shows_our_processes() {
  char self[16];
  const auto size = ::readlink("/proc/self", self, sizeof self - 1);
  if (size <= 0) return false;
  self[size] = '\0';
  return std::atoi(self) == ::getpid();
}

namespace {

/// How long the kernel may take to deliver a SIGKILL before the tree is walked again for newcomers.
constexpr timespec kSweepInterval{.tv_sec = 0, .tv_nsec = 5'000'000};

/// Reads a small /proc file whole; empty on any error.
std::string read_small(const char* path) {
  const Fd fd(::open(path, O_RDONLY | O_CLOEXEC));
  std::string text;
  char buffer[4096];
  while (fd) {
    const auto size = ::read(fd.get(), buffer, sizeof buffer);
    if (size <= 0) break;
    text.append(buffer, static_cast<std::size_t>(size));
  }
  return text;
}

struct Kinship {
  int parent = 0;  // 0: it is gone.
  bool is_dead = false;
};

/// By /proc/PID/stat.
Kinship kinship_of(int pid) {
  const auto stat = read_small(("/proc/" + std::to_string(pid) + "/stat").c_str());
  const auto name_end = stat.rfind(')');  // The name may hold anything.
  if (name_end == std::string::npos || name_end + 4 >= stat.size()) return {};
  const char state = stat[name_end + 2];
  return {.parent = std::atoi(stat.c_str() + name_end + 4),
          .is_dead = state == 'Z' || state == 'X'};
}

std::vector<int> listed_children(int pid) {
  std::vector<int> found;
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  DIR* folder = ::opendir(tasks.c_str());
  if (folder == nullptr) return found;
  while (const dirent* entry = ::readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    const auto children = read_small((tasks + "/" + entry->d_name + "/children").c_str());
    const char* cursor = children.c_str();
    for (char* end = nullptr;; cursor = end) {
      const long child = std::strtol(cursor, &end, 10);
      if (end == cursor) break;
      found.push_back(static_cast<int>(child));
    }
  }
  ::closedir(folder);
  return found;
}

/// Whether this kernel has /proc/PID/task/TID/children; else every look is a pass over all
/// processes.
bool kernel_lists_children() {
  static const bool lists =
      ::access(("/proc/self/task/" + std::to_string(::getpid()) + "/children").c_str(), R_OK) == 0;
  return lists;
}

std::vector<int> children_by_scan(int parent) {
  std::vector<int> found;
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return found;
  while (const dirent* entry = ::readdir(proc)) {
    const int pid = std::atoi(entry->d_name);
    if (pid > 0 && kinship_of(pid).parent == parent) found.push_back(pid);
  }
  ::closedir(proc);
  return found;
}

std::vector<int> children_of(int pid) {
  if (!shows_our_processes()) return {};
  return kernel_lists_children() ? listed_children(pid) : children_by_scan(pid);
}

}  // namespace

int parent_of(int pid) { return kinship_of(pid).parent; }

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

Bystanders present_children() {
  if (!has_children()) return {};
  const auto children = children_of(::getpid());
  return {children.begin(), children.end()};
}

namespace {

void add_all_below(std::vector<int>& found) {
  for (std::size_t next = 0; next < found.size(); ++next) {
    const auto children = children_of(found[next]);
    found.insert(found.end(), children.begin(), children.end());
  }
}

}  // namespace

std::vector<int> descendants(const Bystanders& spared) {
  std::vector<int> found = children_of(::getpid());
  std::erase_if(found, [&spared](int pid) { return spared.contains(pid); });
  add_all_below(found);
  return found;
}

std::size_t kill_below(int root, const std::function<bool()>& is_still_due) {
  auto pids = children_of(root);
  add_all_below(pids);
  std::vector<ProcessHandle> living;
  for (const int pid : pids) {
    auto handle = ProcessHandle::open(pid);
    if (!handle) continue;
    const auto kinship = kinship_of(pid);  // As below: the number may be another's by now.
    const bool is_below =
        kinship.parent == root || std::find(pids.begin(), pids.end(), kinship.parent) != pids.end();
    if (is_below && !kinship.is_dead) living.push_back(std::move(*handle));
  }
  // Asked between the look and the blow: what is started after the answer is not among them.
  if (living.empty() || !is_still_due()) return 0;
  for (const auto& process : living) process.signal(SIGKILL);
  return living.size();
}

std::vector<int> signal_descendants(int signal, const Bystanders& spared,
                                    const std::set<int>& passed_over) {
  const auto pids = descendants(spared);
  std::vector<int> signalled;
  for (const int pid : pids) {
    if (passed_over.contains(pid)) continue;
    const auto target = ProcessHandle::open(pid);
    // Between the walk and the line above the number may have gone to a process that is none of
    // ours. A process whose parent is one of ours, or we, is.
    if (!target) continue;
    const auto kinship = kinship_of(pid);
    const bool ours = kinship.parent == ::getpid() ||
                      std::find(pids.begin(), pids.end(), kinship.parent) != pids.end();
    if (ours && !kinship.is_dead && target->signal(signal)) signalled.push_back(pid);
  }
  return signalled;
}

int signal_descendant(int pid, int signal) {
  // Opened before the look: should the process end meanwhile the signal reaches nobody.
  const auto target = ProcessHandle::open(pid);
  if (!target) return 0;
  constexpr int kMostGenerations = 1000;
  int child = pid;
  for (int generation = 0; generation < kMostGenerations; ++generation) {
    const int parent = parent_of(child);
    if (parent == ::getpid()) {
      target->signal(signal);
      return child;
    }
    if (parent <= 1) return 0;
    child = parent;
  }
  return 0;
}

int ended_child() {
  siginfo_t info{};
  if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return 0;
  return info.si_pid;
}

void reap_orphan(int pid) { ::waitpid(pid, nullptr, WNOHANG); }

bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

std::string describe(const Swept& swept) {
  if (swept.left.empty())
    return "some process that the workers started is left, and /proc does not show which";
  std::string text = "these processes could not be killed:";
  for (const int pid : swept.left) text += " " + std::to_string(pid);
  return text;
}

Swept end_descendants(Duration patience, const Bystanders& spared) {
  sigset_t child_ended, before;
  ::sigemptyset(&child_ended);
  ::sigaddset(&child_ended, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child_ended, &before);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  Swept swept;
  while (true) {
    signal_descendants(SIGKILL, spared);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (!has_children()) break;
    if (!spared.empty() && descendants(spared).empty()) break;
    if (std::chrono::steady_clock::now() >= deadline) {
      swept = {.is_empty = false, .left = descendants(spared)};
      break;
    }
    ::sigtimedwait(&child_ended, nullptr, &kSweepInterval);
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return swept;
}

}  // namespace muster::posix

#include "agent/run/keeper.hpp"

#include "base/exit_status.hpp"
#include "base/posix/fork.hpp"
#include "base/posix/process.hpp"
#include "base/posix/process_tree.hpp"
#include "base/posix/stream.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

namespace muster::agent {
namespace {

constexpr int kOwnError = 1;
constexpr int kLostNode = 75;
constexpr Duration kSweepPatience = std::chrono::seconds(10);

void say(const std::string& text) { std::fprintf(stderr, "muster: %s\n", text.c_str()); }

bool is_crash(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGABRT || signal == SIGILL ||
         signal == SIGFPE || signal == SIGSYS;
}

/// Ends what the agent left, and says what it could not end.
void sweep(const posix::Bystanders& spared) {
  const auto left = posix::end_descendants(kSweepPatience, spared);
  if (left.empty()) return;
  std::string text = "these processes could not be killed:";
  for (const int pid : left) text += " " + std::to_string(pid);
  say(text);
}

int keep(int agent, posix::SignalSource signals, const posix::LeasePage& page,
         const posix::Bystanders& spared) {
  std::optional<ExitStatus> ended;
  while (!ended) {
    posix::wait_readable(signals.descriptor());
    while (const auto signal = signals.next()) {
      if (signal->number == SIGCHLD) {
        ended = posix::reap_child(agent);
      } else {
        posix::forward_signal(agent, *signal);
      }
    }
  }
  page.end();  // A worker that is between fork and exec starts no more.
  if (ended->signal != 0) say("the agent " + describe(*ended) + "; ending its workers");
  sweep(spared);
  if (ended->signal == 0) return ended->code;
  return is_crash(ended->signal) ? kOwnError : kLostNode;
}

}  // namespace

std::vector<int> user_signals(const posix::SignalSettings& inherited) {
  std::vector<int> signals;
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2}) {
    if (!inherited.ignored.contains(number)) signals.push_back(number);
  }
  return signals;
}

int run_kept(const std::function<int(const KeeperLink&)>& agent) {
  posix::ensure_standard_descriptors();
  auto user = posix::current_signal_settings();
  const auto bystanders = posix::present_children();
  posix::adopt_orphans();
  for (const int number : {SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE}) posix::ignore_signal(number);

  auto handled = user_signals(user);
  handled.push_back(SIGCHLD);
  auto signals = posix::SignalSource::open(handled);
  auto page = posix::LeasePage::create();
  auto self = posix::open_pidfd(posix::own_pid());
  for (const auto* error : {signals ? nullptr : &signals.error(), page ? nullptr : &page.error(),
                            self ? nullptr : &self.error()}) {
    if (error == nullptr) continue;
    say(error->message);
    return kOwnError;
  }

  const auto child = posix::fork_process();
  if (!child) {
    say(child.error().message);
    return kOwnError;
  }
  if (*child == 0) {
    // A group of its own: what a terminal or a shell sends to ours reaches the keeper alone, which
    // passes it on once.
    posix::lead_process_group();
    posix::adopt_orphans();
    return agent(KeeperLink{std::move(*self), std::move(*page), std::move(user)});
  }
  return keep(*child, std::move(*signals), *page, bystanders);
}

}  // namespace muster::agent

#include "agent/run/keeper.hpp"

#include "agent/run/farewell_note.hpp"
#include "agent/run/lease_guard.hpp"
#include "agent/run/private_folder.hpp"
#include "base/exit_codes.hpp"
#include "base/exit_status.hpp"
#include "base/posix/fork.hpp"
#include "base/posix/process_handle.hpp"
#include "base/posix/process_tree.hpp"
#include "base/posix/stream.hpp"
#include "base/posix/workers_cgroup.hpp"
#include "base/text.hpp"
#include "rendezvous/client/farewell.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <utility>
#include <vector>

namespace muster::agent {
namespace {

constexpr Duration kSweepPatience = std::chrono::seconds(10);

/// A server that does not acknowledge a farewell in this time gives the ranks away by the lease.
constexpr Duration kFarewellPatience = std::chrono::seconds(2);

void say(const std::string& text) {
  (void)posix::write_within(2, "muster: " + text + "\n", posix::kReadPatience);
}

bool is_crash(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGABRT || signal == SIGILL ||
         signal == SIGFPE || signal == SIGSYS;
}

bool asks_to_end(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

/// Passes signals on and guards the lease until the agent has ended, and reaps it.
ExitStatus watch_over(int agent, posix::SignalSource& signals, const LeaseGuard& lease) {
  while (true) {
    posix::wait_readable({signals.descriptor(), lease.alarm(), lease.changed()});
    lease.look(agent);
    while (const auto signal = signals.next()) {
      if (signal->number != SIGCHLD) {
        posix::forward_signal(agent, *signal);
        if (asks_to_end(signal->number)) posix::let_go_on(agent);  // It may be stopped.
        continue;
      }
      // At once: a signal that is still queued must not go to a pid that is free.
      if (const auto ended = posix::reap_child(agent)) return *ended;
      // Orphans that are none of the agent's: as the first process of a container we get them.
      for (int pid = posix::ended_child(); pid != 0 && pid != agent; pid = posix::ended_child()) {
        posix::reap_orphan(pid);
      }
    }
  }
}

void say_farewell(const posix::SharedNote& shared, const ExitStatus& ended) {
  auto note = decode_farewell_note(shared.read());
  if (!note) return;
  if (ended.signal != 0) note->farewell.reason = "its agent " + describe(ended);
  const auto told =
      rendezvous::say_farewell(note->server, note->token, note->farewell, kFarewellPatience);
  if (!told)
    say("the rendezvous waits for this node's lease to end, since it could not be told: " +
        printable(told.error().message));
}

/// With the agent.
struct Shared {
  posix::LeasePage page;
  posix::SharedNote farewell;
  posix::SharedNote private_folder;
};

int keep(int agent, posix::SignalSource signals, const Shared& shared, posix::BootTimer timer,
         const posix::Bystanders& spared) {
  const auto ended = watch_over(agent, signals, LeaseGuard(shared.page, std::move(timer)));
  shared.page.end();  // A worker that is between fork and exec starts no more.
  // An agent that left in order left nothing, or took back its note. Where there are bystanders,
  // their orphans, which fall to us as well, would be taken for ours.
  const bool in_order = ended.signal == 0;
  posix::Swept swept;
  if (!in_order) posix::end_workers_cgroups_of(agent);
  if (!in_order || spared.empty()) swept = posix::end_descendants(kSweepPatience, spared);
  if (!in_order) posix::end_workers_cgroups_of(agent);  // They are empty now.
  // Ranks are free only when nothing of us can act in them; else the lease decides.
  if (swept.is_empty) say_farewell(shared.farewell, ended);
  remove_private_folder(shared.private_folder);
  // Only now: whoever should read what we say may be asleep.
  if (!in_order) say("the agent " + describe(ended) + "; its workers were ended");
  if (!swept.is_empty) say(posix::describe(swept));
  if (in_order) return ended.code;
  return is_crash(ended.signal) ? kOwnError : kRequeue;
}

/// All but those that can't be caught, those by which a process reports a fault of its own, those
/// of job control, and what we hear of our children.
bool is_for_the_user(int signal) {
  switch (signal) {
    case SIGKILL:
    case SIGSTOP:
    case SIGCHLD:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
    case SIGPIPE:
    case SIGXFSZ:
    case SIGABRT:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGSEGV:
    case SIGSYS:
    case SIGTRAP:
      return false;
    default:
      return signal < __SIGRTMIN || signal >= SIGRTMIN;  // Between them are those of libc.
  }
}

}  // namespace

std::vector<int> user_signals(const posix::SignalSettings& inherited) {
  std::vector<int> signals;
  for (int number = 1; number <= SIGRTMAX; ++number) {
    if (is_for_the_user(number) && !inherited.ignored.contains(number)) signals.push_back(number);
  }
  return signals;
}

int run_kept(const std::function<int(const KeeperLink&)>& agent) {
  posix::close_others_on_exec();
  const int parent = posix::parent_pid();
  auto user = posix::current_signal_settings();
  const auto bystanders = posix::present_children();
  posix::adopt_orphans();
  // What fails with an errno should not kill us: a reader that has gone, a limit on file sizes.
  for (const int number : {SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE, SIGXFSZ}) {
    posix::ignore_signal(number);
  }
  posix::default_signal(SIGCHLD);  // Ignored, as some daemons leave it, it would hide every end.

  auto handled = user_signals(user);
  handled.push_back(SIGCHLD);
  auto signals = posix::SignalSource::open(handled);
  auto page = posix::LeasePage::create();
  auto note = posix::SharedNote::create();
  auto folder = posix::SharedNote::create();
  auto timer = posix::BootTimer::create();
  auto self = posix::DeathWatch::of_this_process();
  for (const auto* error : {signals ? nullptr : &signals.error(), page ? nullptr : &page.error(),
                            note ? nullptr : &note.error(), folder ? nullptr : &folder.error(),
                            timer ? nullptr : &timer.error(), self ? nullptr : &self.error()}) {
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
    self->held.reset();
    const KeeperLink link{std::move(self->watch), std::move(*page),   std::move(user),
                          std::move(*note),       std::move(*folder), parent};
    const int code = agent(link);
    // Nothing is left to be kept from running, but what ends with the process itself: a sanitizer
    // looks for leaks from a process below this one, and would wait for ever for one that is
    // killed.
    link.page.renew_for_ever();
    return code;
  }
  return keep(*child, std::move(*signals), {std::move(*page), std::move(*note), std::move(*folder)},
              std::move(*timer), bystanders);
}

}  // namespace muster::agent

#pragma once

#include "base/ids.hpp"

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace muster::posix {

/// Makes this process the one to which descendants fall when their parent dies
/// (PR_SET_CHILD_SUBREAPER): nothing that a worker started can climb past it, whatever sessions it
/// made.
void adopt_orphans();

/// Processes below this one that are none of ours: children that it had before it became the
/// launcher (a shell's background jobs, when the shell ran `exec muster`).
using Bystanders = std::set<int>;

/// Whether /proc shows this process and those below it. Where it does not (it is not mounted, or is
/// another process namespace's) only our own children can be ended.
[[nodiscard]] bool shows_our_processes();

/// The children that this process has now.
[[nodiscard]] Bystanders present_children();

/// Every process below this one, children before grandchildren; bystanders and what is below them
/// left out. A snapshot: call again until none is left.
[[nodiscard]] std::vector<int> descendants(const Bystanders& spared = {});

/// Sends a signal to every descendant but those passed over (not what is below them), and returns
/// who got it. Safe against pids that were used again.
std::vector<int> signal_descendants(int signal, const Bystanders& spared = {},
                                    const std::set<int>& passed_over = {});

/// Sends a signal to one process if it is below this one, safe against numbers that were used
/// again. Returns the child of ours that it is, or is below; 0: it is gone, or none of ours, and
/// nothing was sent. Signal 0 only looks.
[[nodiscard]] int signal_descendant(int pid, int signal);

/// Kills all that is below `root`, a child of ours, but not itself, and returns how many were
/// alive. `is_still_due` is asked once all of them are known: false, and none is touched. So
/// nothing is killed that was started after it turned false.
std::size_t kill_below(int root, const std::function<bool()>& is_still_due);

/// The parent of a process; 0: it is gone, or /proc does not show it.
[[nodiscard]] int parent_of(int pid);

/// A child that has ended but was not reaped, or 0. The caller reaps it: a worker through its
/// Process, any other (an orphan that fell to us) with `reap_orphan`.
[[nodiscard]] int ended_child();
void reap_orphan(int pid);

/// Whether this process has any child at all, the dead ones that wait to be reaped included. False:
/// the tree is empty.
[[nodiscard]] bool has_children();

/// What is there after the attempt to end all that is below this process.
struct Swept {
  bool is_empty = true;   ///< Nothing is. Only then can nobody act for us any more.
  std::vector<int> left;  ///< What /proc shows of the rest: processes that survive SIGKILL.
};

/// "these processes could not be killed: 4711 4712", for a tree that is not empty.
[[nodiscard]] std::string describe(const Swept& swept);

/// Kills all that is below this process and reaps it, until nothing is left or `patience` is over.
/// Blocks: for the keeper, and for an agent that has nothing else left to do.
Swept end_descendants(Duration patience, const Bystanders& spared = {});

}  // namespace muster::posix

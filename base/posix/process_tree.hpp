#pragma once

#include <vector>

#include "base/ids.hpp"

namespace muster::posix {

/// Makes this process the one to which descendants fall when their parent dies (PR_SET_CHILD_SUBREAPER): nothing that a
/// worker started can climb past it, whatever sessions it made.
void adopt_orphans();

/// Every process below this one, children before grandchildren. A snapshot: call again until none is left.
[[nodiscard]] std::vector<int> descendants();

/// Sends a signal to every descendant and returns how many there were. Safe against pids that were used again.
std::size_t signal_descendants(int signal);

/// A child that has ended but was not reaped, or 0. The caller reaps it: a worker through its Process, any other
/// (an orphan that fell to us) with `reap_orphan`.
[[nodiscard]] int ended_child();
void reap_orphan(int pid);

/// Whether this process has any child at all, the dead ones that wait to be reaped included. False: the tree is empty.
[[nodiscard]] bool has_children();

/// Kills all that is below this process and reaps it, until nothing is left or `patience` is over. Returns the pids that
/// are still there then (a process in uninterruptible sleep), else nothing. Blocks: for the keeper, and for an agent
/// that has nothing else left to do.
std::vector<int> end_descendants(Duration patience);

}  // namespace muster::posix

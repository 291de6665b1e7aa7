#pragma once

#include "base/posix/fd.hpp"
#include "base/posix/lease_page.hpp"
#include "base/posix/shared_note.hpp"
#include "base/posix/signals.hpp"

#include <functional>

namespace muster::agent {

/// What the agent knows of its keeper.
struct KeeperLink {
  posix::Fd watch;                     ///< Readable when the keeper is dead: then end the tree.
  posix::LeasePage page;               ///< Shared with it: until when workers may run.
  posix::SignalSettings user_signals;  ///< As the user's shell gave them; for the workers.
  posix::SharedNote farewell;          ///< Shared with it: what it says for us (FarewellNote).
  posix::SharedNote private_folder;    ///< Shared with it: what it removes for us.
  int parent = 0;                      ///< Of the keeper, when it began; 0: none that we can see.
};

/// The signals that the keeper forwards and the agent acts on: the user's wishes, which may be any
/// that are no fault of our own. One that was ignored when we were started stays ignored.
[[nodiscard]] std::vector<int> user_signals(const posix::SignalSettings& inherited);

/// Splits the process in two (protocol.md 3): this one stays as the keeper, a child runs `agent` in
/// a process group of its own. The keeper forwards the user's signals to it and does nothing else
/// while all is well; it returns the agent's exit code. Past the end of the lease it kills what is
/// below the agent (LeaseGuard). When the agent has ended, in whatever way, it ends every process
/// that is left, sees that none is, says farewell where the agent left a note of how, and removes
/// the agent's private folder. To be called before any thread exists.
///
/// If the agent was killed (not by a fault of its own) the result is 75, worth a requeue; if it
/// crashed, 1.
[[nodiscard]] int run_kept(const std::function<int(const KeeperLink&)>& agent);

}  // namespace muster::agent

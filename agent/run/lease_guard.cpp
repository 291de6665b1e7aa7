#include "agent/run/lease_guard.hpp"

#include "base/posix/process_tree.hpp"

namespace muster::agent {

void LeaseGuard::look(int agent) const {
  page_.heed();
  const auto is_over = [this] {
    const auto ends = page_.lease_ends();
    return ends && posix::boot_now() >= *ends;
  };
  if (!is_over()) {
    timer_.arm(page_.lease_ends());
    return;
  }
  // Renewed meanwhile, it kills nothing: what runs by then may be of the new lease.
  const auto killed = posix::kill_below(agent, is_over);
  timer_.arm(posix::boot_now() + (killed > 0 ? kSweepInterval : kWatchInterval));
}

}  // namespace muster::agent

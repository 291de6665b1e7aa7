#pragma once

#include "base/posix/boot_clock.hpp"
#include "base/posix/lease_page.hpp"

#include <chrono>
#include <utility>

namespace muster::agent {

/// The keeper's watch over the lease (protocol.md 3): past its end everything below the agent is
/// killed, and whatever still appears there, until the lease is renewed, whether the agent is
/// frozen or not. The agent itself lives on: it may rejoin. Never blocks.
class LeaseGuard {
 public:
  /// While something is alive below the agent.
  static constexpr Duration kSweepInterval = std::chrono::milliseconds(20);
  /// While nothing is, but the lease is over.
  static constexpr Duration kWatchInterval = std::chrono::milliseconds(100);

  LeaseGuard(const posix::LeasePage& page, posix::BootTimer timer)
      : page_(page), timer_(std::move(timer)) {}

  /// Readable when `look` has something to do.
  [[nodiscard]] int alarm() const noexcept { return timer_.descriptor(); }
  [[nodiscard]] int changed() const noexcept { return page_.changed(); }
  void look(int agent) const;

 private:
  const posix::LeasePage& page_;
  posix::BootTimer timer_;
};

}  // namespace muster::agent

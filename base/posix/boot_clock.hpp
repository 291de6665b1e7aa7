#pragma once

#include "base/ids.hpp"
#include "base/posix/fd.hpp"

#include <optional>

namespace muster::posix {

/// CLOCK_BOOTTIME, the clock of leases (protocol.md 2): it counts on while the machine is
/// suspended. Its instants are TimePoints that compare with each other, never with those of the
/// steady clock.
[[nodiscard]] TimePoint boot_now() noexcept;

/// Wakes at an instant of the boot clock, after a suspend as well: at once where the instant was
/// slept through. Asio's own timers stand still meanwhile.
class BootTimer {
 public:
  [[nodiscard]] static Result<BootTimer> create();

  /// Readable once the instant has come, until it is armed anew.
  [[nodiscard]] int descriptor() const noexcept { return fd_.get(); }
  /// nullopt: never.
  void arm(std::optional<TimePoint> at) const noexcept;

 private:
  explicit BootTimer(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace muster::posix

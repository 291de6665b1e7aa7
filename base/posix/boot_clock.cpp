#include "base/posix/boot_clock.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <sys/timerfd.h>

namespace muster::posix {

TimePoint boot_now() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return TimePoint(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

Result<BootTimer> BootTimer::create() {
  Fd fd(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!fd) return pass(errno_error(errno, "make a timer"));
  return BootTimer(std::move(fd));
}

void BootTimer::arm(std::optional<TimePoint> at) const noexcept {
  itimerspec when{};
  if (at) {
    // Zero would disarm it; what is past fires at once.
    const auto since_boot = std::max(at->time_since_epoch(), Duration(1));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
    when.it_value.tv_sec = seconds.count();
    when.it_value.tv_nsec = (since_boot - seconds).count();
  }
  ::timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

}  // namespace muster::posix

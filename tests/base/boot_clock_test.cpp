#include "base/posix/boot_clock.hpp"

#include <poll.h>

#include <catch2/catch.hpp>

using namespace muster;
using namespace std::chrono_literals;

namespace {

bool is_readable_within(int fd, std::chrono::milliseconds patience) {
  pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, static_cast<int>(patience.count())) == 1;
}

}  // namespace

TEST_CASE("a boot timer fires at its instant, not before, and is quiet once armed anew",
          "[base][posix]") {
  const auto timer = posix::BootTimer::create().value();
  const auto at = posix::boot_now() + 50ms;
  timer.arm(at);
  REQUIRE(is_readable_within(timer.descriptor(), 10s));
  CHECK(posix::boot_now() >= at);
  timer.arm(posix::boot_now() + 1h);
  CHECK_FALSE(is_readable_within(timer.descriptor(), 0ms));
}

TEST_CASE("a boot timer fires at once for what is past, the clock's own beginning included",
          "[base][posix]") {
  const auto timer = posix::BootTimer::create().value();
  for (const auto at : {TimePoint{}, posix::boot_now() - 1s}) {
    timer.arm(at);
    CHECK(is_readable_within(timer.descriptor(), 10s));
    timer.arm(std::nullopt);
    CHECK_FALSE(is_readable_within(timer.descriptor(), 0ms));
  }
}

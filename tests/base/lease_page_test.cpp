#include "base/posix/lease_page.hpp"

#include "base/posix/boot_clock.hpp"
#include "base/posix/process.hpp"

#include <poll.h>

#include <catch2/catch.hpp>

using namespace muster;
using namespace std::chrono_literals;

namespace {

bool has_changed(const posix::LeasePage& page) {
  pollfd waiting{.fd = page.changed(), .events = POLLIN, .revents = 0};
  const bool changed = ::poll(&waiting, 1, 0) == 1;
  page.heed();
  return changed;
}

std::optional<posix::SpawnError::Step> failed_step(const posix::LeasePage& page) {
  posix::Command command;
  command.path = "/bin/true";
  command.argv = {"true"};
  command.signals = posix::current_signal_settings();
  command.lease_ends = &page.ends();
  auto process = posix::Process::spawn(command);
  if (!process) return process.error().step;
  while (!process->reap()) {
    pollfd waiting{.fd = process->watch(), .events = POLLIN, .revents = 0};
    ::poll(&waiting, 1, -1);
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("no worker starts before the first lease, after its end, or once none may", "[base]") {
  const auto page = posix::LeasePage::create().value();
  CHECK(failed_step(page) == posix::SpawnError::Step::LeaseEnded);
  page.renew(posix::boot_now() + 1h);
  CHECK(failed_step(page) == std::nullopt);
  page.renew(posix::boot_now());
  CHECK(failed_step(page) == posix::SpawnError::Step::LeaseEnded);
  page.renew_for_ever();
  CHECK(failed_step(page) == std::nullopt);
  page.end();
  CHECK(failed_step(page) == posix::SpawnError::Step::LeaseEnded);
}

TEST_CASE("the page calls for a look when a lease begins or ends sooner, not when it lasts longer",
          "[base]") {
  const auto page = posix::LeasePage::create().value();
  const auto now = posix::boot_now();
  CHECK_FALSE(has_changed(page));
  CHECK(page.lease_ends() == std::nullopt);

  page.renew(now + 1h);
  CHECK(has_changed(page));
  CHECK(page.lease_ends() == now + 1h);
  page.renew(now + 2h);
  CHECK_FALSE(has_changed(page));
  CHECK(page.lease_ends() == now + 2h);
  page.renew(now + 1h);
  CHECK(has_changed(page));

  page.renew(now);  // Over.
  CHECK(has_changed(page));
  page.renew(now + 1h);
  CHECK(has_changed(page));
}

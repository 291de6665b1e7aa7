#include "base/posix/lease_page.hpp"

#include "base/posix/boot_clock.hpp"

#include <algorithm>
#include <cerrno>
#include <new>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <utility>

namespace muster::posix {

static_assert(std::atomic<std::int64_t>::is_always_lock_free);

Result<LeasePage> LeasePage::create() {
  Fd changed(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!changed) return pass(errno_error(errno, "make an eventfd"));
  void* page = ::mmap(nullptr, sizeof(std::atomic<std::int64_t>), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED)
    return pass(errno_error(errno, "map the page shared by keeper and agent"));
  return LeasePage(new (page) std::atomic<std::int64_t>(kNone), std::move(changed));
}

LeasePage::LeasePage(LeasePage&& other) noexcept
    : ends_(std::exchange(other.ends_, nullptr)), changed_(std::move(other.changed_)) {}

LeasePage::~LeasePage() {
  if (ends_ != nullptr) ::munmap(ends_, sizeof *ends_);
}

void LeasePage::renew(TimePoint ends) const noexcept {
  const auto wanted =
      std::clamp<std::int64_t>(ends.time_since_epoch().count(), kNone + 1, kNever - 1);
  const auto before = ends_->exchange(wanted, std::memory_order_seq_cst);
  const bool was_running = before != kNever && before > boot_now().time_since_epoch().count();
  if (was_running && before <= wanted) return;
  ::eventfd_write(changed_.get(), 1);
}

void LeasePage::renew_for_ever() const noexcept { ends_->store(kNever, std::memory_order_seq_cst); }

void LeasePage::end() const noexcept { ends_->store(kNone, std::memory_order_seq_cst); }

std::optional<TimePoint> LeasePage::lease_ends() const noexcept {
  const auto ends = ends_->load(std::memory_order_seq_cst);
  if (ends == kNone || ends == kNever) return std::nullopt;
  return TimePoint(Duration(ends));
}

void LeasePage::heed() const noexcept {
  eventfd_t count = 0;
  ::eventfd_read(changed_.get(), &count);
}

}  // namespace muster::posix

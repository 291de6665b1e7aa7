#include "base/posix/lease_page.hpp"

#include "base/posix/fd.hpp"

#include <cerrno>
#include <new>
#include <sys/mman.h>
#include <utility>

namespace muster::posix {

static_assert(std::atomic<std::int64_t>::is_always_lock_free);

Result<LeasePage> LeasePage::create() {
  void* page = ::mmap(nullptr, sizeof(std::atomic<std::int64_t>), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED)
    return pass(errno_error(errno, "map the page shared by keeper and agent"));
  return LeasePage(new (page) std::atomic<std::int64_t>(kNever));
}

LeasePage::LeasePage(LeasePage&& other) noexcept : ends_(std::exchange(other.ends_, nullptr)) {}

LeasePage::~LeasePage() {
  if (ends_ != nullptr) ::munmap(ends_, sizeof *ends_);
}

}  // namespace muster::posix

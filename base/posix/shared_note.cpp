#include "base/posix/shared_note.hpp"

#include "base/posix/fd.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <new>
#include <sys/mman.h>
#include <utility>

namespace muster::posix {

/// A text is written where the one that stands is not; then one store makes it the one that stands.
struct SharedNote::Pages {
  std::atomic<std::uint32_t> standing{0};
  std::array<std::size_t, 2> sizes{};
  std::array<std::array<char, kCapacity>, 2> texts;  // Untouched, it costs no memory.
};

Result<SharedNote> SharedNote::create() {
  static_assert(decltype(Pages::standing)::is_always_lock_free);
  void* memory =
      ::mmap(nullptr, sizeof(Pages), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return pass(errno_error(errno, "map the note shared by keeper and agent"));
  return SharedNote(new (memory) Pages);
}

SharedNote::SharedNote(SharedNote&& other) noexcept
    : pages_(std::exchange(other.pages_, nullptr)) {}

SharedNote::~SharedNote() {
  if (pages_ != nullptr) ::munmap(pages_, sizeof *pages_);
}

bool SharedNote::write(std::string_view text) const noexcept {
  if (text.size() > kCapacity) return false;
  const auto next = 1 - pages_->standing.load(std::memory_order_relaxed);
  pages_->sizes[next] = text.size();
  std::copy(text.begin(), text.end(), pages_->texts[next].begin());
  pages_->standing.store(next, std::memory_order_seq_cst);
  return true;
}

std::string SharedNote::read() const {
  const auto standing = pages_->standing.load(std::memory_order_seq_cst) & 1U;
  return {pages_->texts[standing].data(), std::min(pages_->sizes[standing], kCapacity)};
}

}  // namespace muster::posix

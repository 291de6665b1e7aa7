#pragma once

#include "rendezvous/store/limits.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

namespace muster::store {

/// What a buffer takes beyond the object itself.
[[nodiscard]] inline std::size_t heap_bytes(const std::string& buffer) noexcept {
  constexpr std::size_t kInside = 15;
  return buffer.capacity() <= kInside ? 0 : buffer.capacity();
}

/// What it would take if it got `size` bytes long. A string that grows at least doubles its memory:
/// as long as its old memory is still there too, both together touch no more than this.
[[nodiscard]] inline std::size_t heap_bytes_at(const std::string& buffer,
                                               std::size_t size) noexcept {
  if (size <= buffer.capacity()) return heap_bytes(buffer);
  return std::max(size, 2 * buffer.capacity());
}

/// Empties it, and gives back its memory if that is more than `kept`.
inline void empty(std::string& buffer, std::size_t kept) {
  buffer.clear();
  if (buffer.capacity() > kept) std::string().swap(buffer);
}

/// Why a connection is closed that would make all buffers exceed their limit.
[[nodiscard]] inline std::string over_buffered_bytes(const Limits& limits) {
  return "unfinished requests and replies not taken, of all connections together, would exceed the "
         "limit of " +
         std::to_string(limits.buffered_bytes) + " bytes";
}

}  // namespace muster::store

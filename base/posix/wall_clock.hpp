#pragma once

#include <chrono>
#include <cstdint>

namespace muster::posix {

/// Microseconds since 1970, by a clock that may be set: for people, and to compare with what others
/// wrote down by it.
[[nodiscard]] inline std::int64_t wall_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

}  // namespace muster::posix

#pragma once

namespace muster {

/// Says which invariant broke and where, on stderr, and aborts.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line) noexcept;

}  // namespace muster

/// An invariant of ours: checked in every build, ends the process. Not for input.
#define MUSTER_ASSERT(expression)      \
  ((expression) ? static_cast<void>(0) \
                : ::muster::assertion_failed(#expression, __FILE__, __LINE__))

#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace muster {

void assertion_failed(const char* expression, const char* file, int line) noexcept {
  std::fprintf(stderr, "muster: invariant broken: %s at %s:%d\n", expression, file, line);
  std::abort();
}

}  // namespace muster

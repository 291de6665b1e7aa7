#pragma once

#include "base/ids.hpp"

#include <random>

namespace muster::store_client {

/// Pauses between tries: short at first, since a server that starts together with us is there in
/// milliseconds, then growing; each scattered, so that thousands of clients don't come in step.
class Backoff {
 public:
  Backoff();

  [[nodiscard]] Duration next();

 private:
  Duration pause_;
  std::minstd_rand random_;
};

constexpr Duration kFirstPause = std::chrono::milliseconds(5);
constexpr Duration kLongestPause = std::chrono::seconds(1);

}  // namespace muster::store_client

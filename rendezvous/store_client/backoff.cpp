#include "rendezvous/store_client/backoff.hpp"

#include <algorithm>
#include <chrono>

namespace muster::store_client {

// The clock in nanoseconds differs between processes that start at once; more is not asked of a
// scatter.
Backoff::Backoff()
    : pause_(kFirstPause),
      random_(static_cast<std::minstd_rand::result_type>(
          std::chrono::steady_clock::now().time_since_epoch().count())) {}

Duration Backoff::next() {
  constexpr int kPercentLeast = 70;
  constexpr int kPercentMost = 130;
  const auto percent = std::uniform_int_distribution(kPercentLeast, kPercentMost)(random_);
  const auto scattered = pause_ * percent / 100;
  pause_ = std::min(kLongestPause, pause_ * 8 / 5);
  return scattered;
}

}  // namespace muster::store_client

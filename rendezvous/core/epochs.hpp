#pragma once

#include "base/ids.hpp"

#include <algorithm>
#include <cstdint>

namespace muster::rendezvous {

/// The epochs of one server's rounds: a counter in the upper half, random bits in the lower, so
/// that two servers that heard of nothing still differ (protocol.md 1).
class Epochs {
 public:
  explicit Epochs(std::uint32_t bits) : bits_(bits) {}

  void hear(RoundId round) { heard_ = std::max(heard_, round.epoch); }

  /// Of the next round: above any heard of.
  [[nodiscard]] std::uint64_t current() {
    if (of(counter_) <= heard_) counter_ = (heard_ >> 32U) + 1;
    return of(counter_);
  }

 private:
  [[nodiscard]] std::uint64_t of(std::uint64_t counter) const { return counter << 32U | bits_; }

  std::uint32_t bits_;
  std::uint64_t counter_ = 1;
  std::uint64_t heard_ = 0;
};

}  // namespace muster::rendezvous

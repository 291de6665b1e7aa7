#pragma once

#include "base/membership.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace muster::rendezvous {

/// Nodes of a job at most; more are refused.
constexpr std::uint32_t kMostNodes = 20'000;

/// How many nodes a round may have: the multiples of `step` from `min` to `max`. Those that are
/// something wrong with (what_is_wrong) have no legal size.
struct Sizes {
  std::uint32_t min = 1;
  std::uint32_t max = 1;
  std::uint32_t step = 1;
  friend bool operator==(const Sizes&, const Sizes&) = default;

  /// The largest legal size of at most `nodes`; nullopt: they are too few for any.
  [[nodiscard]] std::optional<std::uint32_t> legal(std::size_t nodes) const;
  [[nodiscard]] std::uint64_t smallest() const {
    return (std::uint64_t{min} + step - 1) / step * step;
  }
  [[nodiscard]] std::uint32_t largest() const { return legal(max).value_or(min); }
};

/// What is wrong with them, naming all the numbers; nullopt: nothing.
[[nodiscard]] std::optional<std::string> what_is_wrong(const Sizes& sizes);

/// "2 to 8", "4".
[[nodiscard]] std::string range_text(const Sizes& sizes);

}  // namespace muster::rendezvous

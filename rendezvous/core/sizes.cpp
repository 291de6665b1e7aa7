#include "rendezvous/core/sizes.hpp"

#include <algorithm>

namespace muster::rendezvous {

std::optional<std::uint32_t> Sizes::legal(std::size_t nodes) const {
  const auto most = static_cast<std::uint32_t>(std::min<std::size_t>(nodes, max));
  const auto size = most - most % step;
  if (size < min) return std::nullopt;
  return size;
}

std::optional<std::string> what_is_wrong(const Sizes& sizes) {
  const auto min = std::to_string(sizes.min);
  const auto max = std::to_string(sizes.max);
  const auto step = std::to_string(sizes.step);
  if (sizes.min == 0 || sizes.step == 0)
    return "a job has at least one node, and its sizes a step of at least 1: got " + min + ":" +
           max + ":" + step;
  if (sizes.max > kMostNodes)
    return "a job has at most " + std::to_string(kMostNodes) + " nodes: got " + max;
  if (sizes.min > sizes.max) return "the minimum of " + min + " is above the maximum of " + max;
  if (sizes.smallest() > sizes.max)
    return "no multiple of " + step + " lies from " + min + " to " + max;
  return std::nullopt;
}

std::string range_text(const Sizes& sizes) {
  const auto smallest = std::to_string(sizes.smallest());
  if (sizes.smallest() == sizes.largest()) return smallest;
  return smallest + " to " + std::to_string(sizes.largest());
}

}  // namespace muster::rendezvous

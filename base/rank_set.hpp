#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace muster {

/// A set of rank numbers, small however many they are, as long as they lie together.
class RankSet {
 public:
  /// Both ends included; first <= last.
  void insert(std::uint32_t first, std::uint32_t last);
  [[nodiscard]] bool contains(std::uint32_t rank) const;
  /// Of a set that is not empty.
  [[nodiscard]] std::uint32_t highest() const { return last_of_.rbegin()->second; }
  /// `0,2-5`: neighbours are drawn together. `offset` is added to each.
  [[nodiscard]] std::string text(std::uint32_t offset = 0) const;

  friend bool operator==(const RankSet&, const RankSet&) = default;

 private:
  std::map<std::uint32_t, std::uint32_t>
      last_of_;  // By the first; neither overlapping nor adjacent.
};

}  // namespace muster

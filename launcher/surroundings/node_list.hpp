#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// How Slurm writes the nodes of a job, and numbers for each of them, in few characters.
namespace muster::launcher {

/// The most nodes that a list may have; a longer one is an error.
constexpr std::size_t kMaxListed = 65536;

/// `a[01-03,7],b-[1-2]c[3-4],login`: names with commas between, in which brackets stand for
/// numbers, ranges of numbers (as wide as their first one is written) or further such lists;
/// brackets of one name vary from right to left. The names come in Slurm's order. The error says
/// what is wrong, and at which character.
[[nodiscard]] Result<std::vector<std::string>> parse_node_list(std::string_view text);

/// `4(x2),3`: 4, 4, 3. One number for each node.
[[nodiscard]] Result<std::vector<std::uint32_t>> parse_counts(std::string_view text);

}  // namespace muster::launcher

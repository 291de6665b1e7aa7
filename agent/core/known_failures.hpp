#pragma once

#include "base/exit_status.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

/// Room on a file system, in bytes.
struct Room {
  std::uint64_t size = 0;
  std::uint64_t free = 0;
};

/// What a failure of a known kind means and what to do about it, in one line; empty: it is of no
/// kind that is known. The newest words count: of `account` (its error file's text) and of stderr,
/// what belongs to the last traceback and those that it is chained to, or else the last lines.
[[nodiscard]] std::string hint_for(const ExitStatus& status, std::string_view account,
                                   const std::vector<std::string>& stderr_lines,
                                   const std::optional<Room>& shared_memory);

/// For a worker that the kernel killed for memory.
[[nodiscard]] std::string out_of_memory_hint();

}  // namespace muster::agent

#pragma once

#include "base/membership.hpp"
#include "launcher/closing_block.hpp"

#include <string>
#include <string_view>

namespace muster::launcher {

/// The end of a job for programs (`--report`), as docs/reference/report.md says: one JSON object, a
/// newline behind it.
[[nodiscard]] std::string report(const Verdict& verdict, const JobFacts& facts,
                                 std::string_view version);

}  // namespace muster::launcher

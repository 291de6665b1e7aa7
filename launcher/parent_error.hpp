#pragma once

#include "base/membership.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::launcher {

/// The error file for a scheduler above the launcher, in torch's format. What the worker that was
/// the cause wrote into its error file (`recorded`) is passed on: of the nested
/// format with `message.errorCode` added, of the flat one unchanged. Where it recorded nothing, or
/// nothing that makes sense, what is known of the end stands there in the nested format. `now`:
/// microseconds since 1970.
[[nodiscard]] std::string parent_error(const Verdict& verdict, std::string_view recorded,
                                       std::int64_t now);

}  // namespace muster::launcher

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::rendezvous {

/// What came from outside, for a line of a log or of a terminal: bytes that are not printable ASCII
/// or part of UTF-8 come out as \\xNN. `limit`: how many bytes of it are shown.
[[nodiscard]] std::string printable(std::string_view bytes, std::size_t limit = std::string::npos);

}  // namespace muster::rendezvous

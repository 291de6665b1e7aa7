#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// Texts that came from outside, made fit for a terminal, a log line or a protobuf string.
namespace muster {

/// Length of the printable UTF-8 character that `text`, which is not empty, begins with; 0 where it
/// begins with anything else.
[[nodiscard]] std::size_t printable_length(std::string_view text);

/// With control characters and bytes that are not UTF-8 as `\x0a`.
[[nodiscard]] std::string printable(std::string_view text);

/// With U+FFFD for each byte that is not of UTF-8; control characters stay.
[[nodiscard]] std::string valid_utf8(std::string_view text);

}  // namespace muster

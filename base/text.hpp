#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// Texts that came from outside, made fit for a terminal, a log line or a protobuf string.
namespace muster {

/// Length of the printable UTF-8 character that `text`, which is not empty, begins with; 0 where it
/// begins with anything else.
[[nodiscard]] std::size_t printable_length(std::string_view text);

/// Where text must be UTF-8 (JSON): each byte that is not part of it becomes U+FFFD. Control
/// characters stay.
[[nodiscard]] std::string to_utf8(std::string_view text);

/// With control characters and bytes that are not UTF-8 as `\x0a`.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace muster

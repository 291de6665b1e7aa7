#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Texts that came from outside, cut, and made fit for a terminal, a log line or a protobuf string.
namespace muster {

/// Length of the printable UTF-8 character that `text`, which is not empty, begins with; 0 where it
/// begins with anything else.
[[nodiscard]] std::size_t printable_length(std::string_view text);

/// Where text must be UTF-8 (JSON): each byte that is not part of it becomes U+FFFD. Control
/// characters stay.
[[nodiscard]] std::string to_utf8(std::string_view text);

/// With control characters and bytes that are not UTF-8 as `\x0a`.
[[nodiscard]] std::string printable(std::string_view text);

/// What stands between the `at`s, before the first and behind the last: one part at least.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char at);

/// Without their ends; the last one needs none.
[[nodiscard]] std::vector<std::string_view> lines_of(std::string_view text);

/// "3 nodes", "1 node", "2 processes".
[[nodiscard]] std::string count_of(std::size_t count, std::string_view noun);

}  // namespace muster

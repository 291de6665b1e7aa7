#pragma once

#include <string>
#include <string_view>

namespace muster::launcher {

/// The longest piece of a user's text that a message repeats, in bytes; the rest is left out, which
/// `...` says.
constexpr std::size_t kMaxQuoted = 200;

/// The text in single quotes, fit for a terminal and for one line: control characters and bytes
/// that are not UTF-8 come out as `\x0a`.
[[nodiscard]] std::string in_quotes(std::string_view text);

/// How many letters must be inserted, deleted, replaced or swapped with their neighbour to make one
/// text of the other.
[[nodiscard]] std::size_t edit_distance(std::string_view left, std::string_view right);

}  // namespace muster::launcher

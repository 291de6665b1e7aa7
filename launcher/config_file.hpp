#pragma once

#include "base/error.hpp"
#include "launcher/given.hpp"

#include <string>
#include <string_view>

namespace muster::launcher {

/// Reads the text of `--config`: flags by their names, as a small part of TOML. One `name = value`
/// a line, in an optional table [muster]; a value is a string in quotes, an integer, true or false
/// for a switch, or, for a flag that takes several, an array of strings on one line; comments. All
/// else is an error that names file and line: nothing is skipped. No flag of the launcher's own
/// text (--help, --version, --explain) and no other file may stand there.
[[nodiscard]] Result<GivenFlags> parse_config(std::string_view text, const std::string& path);

}  // namespace muster::launcher

#pragma once

#include "base/error.hpp"
#include "launcher/flags.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace muster::launcher {

/// A command line cut at the script. Launcher flags stand in `flags` in one form only: `--name` for
/// a switch, `--name` and the value as two words for the others, always with dashes and in full.
struct CutCommandLine {
  std::vector<std::string> flags;
  std::optional<std::string> script;
  std::vector<std::string> script_args;  ///< What stood behind the script, byte by byte.
  std::vector<const Flag*> not_yet;      ///< Those met that this version does not have.
};

/// Cuts a command line (without argv[0]) by the rules that torchrun's users know, those of Python's
/// argparse:
///
/// - the first word that is no flag and no flag's value is the script; nothing behind it is looked
/// at;
/// - a flag may be shortened as long as one spelling of one flag begins so (ours never make
/// torchrun's ambiguous);
/// - a value that begins with a dash needs `=`, unless it is a negative number or has a blank in
/// it;
/// - switches with a letter may be run together: `-mr3`;
/// - `--` ends the flags; one directly behind the script is dropped, unless an earlier one ended
/// the flags.
///
/// Fails on flags that are unknown, ambiguous, or without their value, unless the user asks for
/// help or the version somewhere in front of the script: then that is all there is in `flags`.
[[nodiscard]] Result<CutCommandLine> cut_command_line(std::span<const std::string> words);

}  // namespace muster::launcher

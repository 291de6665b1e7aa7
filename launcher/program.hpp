#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "launcher/options.hpp"
#include "launcher/python.hpp"

#include <optional>
#include <string>
#include <vector>

namespace muster::launcher {

/// What every worker runs, and why.
struct Program {
  std::string path;  ///< The file to execute: has a slash.
  std::vector<std::string>
      prefix;  ///< argv up to and including the script; argv[0] is what a shell would give.
  std::vector<std::string> args;  ///< The user's, before the template step.
  PassLocalRank pass_local_rank = PassLocalRank::No;
  std::string why;                     ///< `train.py ends in .py`
  std::optional<ChosenPython> python;  ///< Where one runs the program.
};

/// Decides what is run. Every error is the user's to mend (exit code 2) and says what was looked
/// at.
[[nodiscard]] Result<Program> resolve_program(const Options& options,
                                              const Environment& environment);

/// What one worker executes.
struct WorkerCommand {
  std::string path;
  std::vector<std::string> argv;
};

/// The command of one worker: `${local_rank}` and `$local_rank` in the user's arguments are its
/// rank, `$$` is `$`.
[[nodiscard]] WorkerCommand worker_command(const Program& program, LocalRank rank);

}  // namespace muster::launcher

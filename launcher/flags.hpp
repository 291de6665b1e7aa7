#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::launcher {

/// What a flag takes.
enum class Takes {
  Nothing,     ///< A switch.
  Value,       ///< `--x=v` or `--x v`.
  Values,      ///< As Value; given several times all of them count, and a comma parts them.
  MaybeValue,  ///< `--x=v` or `--x`, which stands for `--x=implied`.
  Over,        ///< A switch that is answered at once: nothing behind it is read.
};

/// Whose flag it is.
enum class Owner {
  Torchrun,  ///< Its variable is PET_<NAME>.
  Muster,    ///< Its variable is MUSTER_<NAME>.
  NotYet,    ///< torchrun's; known, so that prefixes mean what they mean there, but refused.
};

/// Whether a variable may stand for the flag.
enum class Variable { Has, HasNone };

/// One row of the table of flags: all that the parser, the help and the messages need to know.
struct Flag {
  std::string_view name;  ///< With dashes, without the leading ones; underscores are as good.
  char letter;            ///< '\0': none.
  Takes takes;
  Owner owner;
  Variable variable;
  std::string_view value;    ///< What the help calls the value.
  std::string_view implied;  ///< Of MaybeValue.
  std::string_view help;
};

/// Every flag, in the order in which help shows them.
[[nodiscard]] std::span<const Flag> flags();

/// `--nproc-per-node`.
[[nodiscard]] std::string long_option(const Flag& flag);

/// The ways to write its name: `--nproc-per-node` and `--nproc_per_node`.
[[nodiscard]] std::vector<std::string> long_options(const Flag& flag);

/// `PET_NPROC_PER_NODE`; empty where no variable may stand for it.
[[nodiscard]] std::string variable_name(const Flag& flag);

}  // namespace muster::launcher

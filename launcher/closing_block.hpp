#pragma once

#include "base/membership.hpp"
#include "launcher/program.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::launcher {

/// What the closing block says beside the verdict.
struct JobFacts {
  std::string id;
  Duration took{};
  std::int64_t began_at = 0;  ///< Microseconds since 1970.
  std::int64_t ended_at = 0;
  std::optional<NodeRank> node_rank;  ///< Of this node; nullopt: it was in no round.
  std::string command;                ///< As a worker ran it.
  std::optional<ChosenPython> python;
  std::string log_folder;        ///< Empty: none.
  bool err_on_terminal = false;  ///< The workers' stderr was not ours to read.
  std::vector<int> survivors;    ///< Pids on this node that SIGKILL did not end.
  /// That another node's launcher prints the block: this one says the outcome in one line.
  bool is_told_elsewhere = false;
};

/// Of a node that never came (back) to the rendezvous it is not.
[[nodiscard]] bool is_known(NodeRank rank);

/// The text that ends a job which did not succeed: its first cause, the last words of that worker,
/// and who was only a victim. Readable without colour; ends in a newline.
[[nodiscard]] std::string closing_block(const Verdict& verdict, const JobFacts& facts);

/// A command line as a user could type it: quoted where a shell needs it, long ones cut.
[[nodiscard]] std::string shell_text(const std::vector<std::string>& argv);

}  // namespace muster::launcher

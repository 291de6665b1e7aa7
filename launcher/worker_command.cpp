#include "base/template_text.hpp"
#include "launcher/program.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace muster::launcher {
WorkerCommand worker_command(const Program& program, LocalRank rank) {
  const std::string number = std::to_string(rank.value);
  WorkerCommand command{.path = program.path, .argv = program.prefix};
  command.argv.reserve(program.prefix.size() + program.args.size() + 1);
  switch (program.pass_local_rank) {
    case PassLocalRank::No:
      break;
    case PassLocalRank::Underscore:
      command.argv.push_back("--local_rank=" + number);
      break;
    case PassLocalRank::Dash:
      command.argv.push_back("--local-rank=" + number);
      break;
  }
  for (const std::string& argument : program.args) {
    command.argv.push_back(substituted(argument, [&number](std::string_view name) {
      return name == "local_rank" ? std::optional(number) : std::nullopt;
    }));
  }
  return command;
}

}  // namespace muster::launcher

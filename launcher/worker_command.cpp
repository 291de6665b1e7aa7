#include "launcher/program.hpp"

#include <string>
#include <string_view>

namespace muster::launcher {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// One argument with its `$` read as Python's string templates read them.
std::string substituted(std::string_view text, const std::string& rank) {
  constexpr std::string_view kBraced = "{local_rank}";
  constexpr std::string_view kBare = "local_rank";
  std::string result;
  while (!text.empty()) {
    const auto dollar = text.find('$');
    result += text.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    text.remove_prefix(dollar + 1);
    if (text.starts_with('$')) {
      result += '$';
      text.remove_prefix(1);
    } else if (text.starts_with(kBraced)) {
      result += rank;
      text.remove_prefix(kBraced.size());
    } else if (text.starts_with(kBare) &&
               (text.size() == kBare.size() || !is_word(text[kBare.size()]))) {
      result += rank;
      text.remove_prefix(kBare.size());
    } else {
      result += '$';
    }
  }
  return result;
}

}  // namespace

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
    command.argv.push_back(substituted(argument, number));
  }
  return command;
}

}  // namespace muster::launcher

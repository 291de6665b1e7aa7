#include "tests/launcher/command_line.hpp"

#include <fstream>
#include <string_view>

namespace muster::launcher {
namespace {

struct Recorded {
  std::string line;
  Environment environment;
  std::vector<std::string> words;
  std::vector<std::string> torchrun;
  std::vector<std::string> expected;  // torchrun's answer, unless we mean to differ.
};

std::vector<std::string> split(std::string_view line) {
  std::vector<std::string> words;
  while (true) {
    const auto tab = line.find('\t');
    const auto word = line.substr(0, tab);
    words.emplace_back(word == "''" ? "" : word);
    if (tab == std::string_view::npos) return words;
    line.remove_prefix(tab + 1);
  }
}

std::vector<Recorded> recorded() {
  std::vector<Recorded> all;
  std::ifstream file("torchrun_command_lines.txt");
  std::string line;
  while (std::getline(file, line)) {
    auto words = split(line);
    const std::string mark = words.front();
    words.erase(words.begin());
    if (mark == "$") {
      Recorded next;
      next.line = line;
      while (!words.empty() && words.front().starts_with("PET_")) {
        const auto equals = words.front().find('=');
        next.environment[words.front().substr(0, equals)] = words.front().substr(equals + 1);
        words.erase(words.begin());
      }
      next.words = words;
      all.push_back(next);
    } else if (mark == "=") {
      all.back().torchrun = words;
      all.back().expected = words;
    } else if (mark == "!") {
      words.pop_back();  // The reason.
      all.back().expected = words;
    } else {
      REQUIRE(line.starts_with('#'));
    }
  }
  return all;
}

std::string text_of(const StreamMap& map) {
  if (map.named.empty()) return std::to_string(static_cast<int>(map.everyone));
  std::string text;
  for (const auto& [rank, streams] : map.named) {
    text += (text.empty() ? "" : ",") + std::to_string(rank.value) + ":" +
            std::to_string(static_cast<int>(streams));
  }
  return text;
}

std::string kind_of(const Options& options) {
  switch (options.program_kind) {
    case ProgramKind::Script:
      return "script";
    case ProgramKind::Module:
      return "module";
    case ProgramKind::NoPython:
      return "no_python";
    case ProgramKind::RunPath:
      return "run_path";
  }
  return "?";
}

/// In the words of the record: what differs from the defaults.
std::vector<std::string> fields_of(const Options& options) {
  std::vector<std::string> fields;
  const auto add = [&fields](const std::string& name, const std::string& value,
                             const std::string& usual) {
    if (value != usual) fields.push_back(name + "=" + value);
  };
  std::string filter;
  if (const auto& ranks = options.output.local_ranks_filter) {
    for (std::uint32_t rank = 0; rank <= ranks->highest(); ++rank) {
      if (ranks->contains(rank)) filter += (filter.empty() ? "" : ",") + std::to_string(rank);
    }
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options.stopping.grace);
  add("nproc_per_node", std::to_string(options.nproc), "1");
  add("max_restarts", std::to_string(options.job.max_restarts), "0");
  add("standalone", options.standalone ? "True" : "False", "False");
  add("rdzv_id", options.rdzv_id.value_or("none"), "none");
  add("role", options.role, "default");
  add("kind", kind_of(options), "script");
  add("log_dir", options.log_dir.value_or(""), "");
  add("redirects", text_of(options.redirects), "0");
  add("tee", text_of(options.tee), "0");
  add("local_ranks_filter", filter, "");
  const auto& asked = options.asked;
  add("master_addr", asked.master_addr ? asked.master_addr->value.host : "", "");
  add("master_port", std::to_string(asked.master_port ? asked.master_port->value.port : 0), "0");
  add("shutdown_timeout", std::to_string(seconds.count()), "30");
  const bool c10d = asked.backend && asked.backend->value == RdzvBackend::C10d;
  add("nnodes", std::to_string(options.job.min_nodes) + ":" + std::to_string(options.job.max_nodes),
      "1:1");
  add("node_rank", std::to_string(options.node_rank.value_or(NodeRank{0}).value), "0");
  add("rdzv_backend", c10d ? "c10d" : "static", "static");
  add("rdzv_endpoint", asked.endpoint ? asked.endpoint->value : "", "");
  add("local_addr", options.local_addr, "");
  fields.push_back("script=" + options.script);
  for (const auto& argument : options.script_args) fields.push_back("arg=" + argument);
  return fields;
}

std::vector<std::string> answer(const Recorded& record) {
  const auto parsed = parse(record.words, record.environment);
  if (const auto* options = std::get_if<Options>(&parsed)) return fields_of(*options);
  return {std::get<ExitNow>(parsed).code == 0 ? "help" : "refused"};
}

}  // namespace

TEST_CASE("a command line means what it means to torchrun", "[launcher][torchrun]") {
  const auto all = recorded();
  REQUIRE(all.size() > 150);
  for (const auto& record : all) {
    INFO(record.line);
    REQUIRE_FALSE(record.torchrun.empty());
    CHECK(answer(record) == record.expected);
  }
}

}  // namespace muster::launcher

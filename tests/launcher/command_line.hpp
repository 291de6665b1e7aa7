#pragma once

#include "launcher/options.hpp"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <catch2/catch.hpp>

namespace muster::launcher {

/// A machine of three processors, no files, and as many GPUs as asked for.
inline Machine machine_with(std::uint32_t gpus) {
  return {.cpus = [] { return 3U; },
          .nvidia_devices = [gpus] { return gpus; },
          .read_file = [](const std::string& path) -> Result<std::string> {
            return fail(Errc::NotFound, "no file " + path);
          }};
}

/// Parses the words behind `muster`.
inline std::variant<Options, ExitNow> parse(std::vector<std::string> words,
                                            const Environment& environment = {},
                                            const Machine& machine = machine_with(0)) {
  words.insert(words.begin(), "/opt/bin/muster");
  return parse_command_line(words, environment, machine);
}

/// Of a command line that must make sense.
inline Options options_of(std::vector<std::string> words, const Environment& environment = {},
                          const Machine& machine = machine_with(0)) {
  auto parsed = parse(std::move(words), environment, machine);
  if (const auto* now = std::get_if<ExitNow>(&parsed)) FAIL(now->err << now->out);
  return std::get<Options>(std::move(parsed));
}

/// The last line of what a command line that makes no sense is answered with, less `muster: error:
/// `.
inline std::string error_of(std::vector<std::string> words, const Environment& environment = {},
                            const Machine& machine = machine_with(0)) {
  const std::string prefix = "muster: error: ";
  const auto parsed = parse(std::move(words), environment, machine);
  const auto* now = std::get_if<ExitNow>(&parsed);
  if (now == nullptr) return "(accepted)";
  CHECK(now->code == 2);
  CHECK(now->out.empty());
  CHECK(now->err.starts_with("usage: muster "));
  REQUIRE(now->err.ends_with('\n'));
  const auto start = now->err.rfind('\n', now->err.size() - 2) + 1;
  const std::string last = now->err.substr(start, now->err.size() - start - 1);
  CHECK(last.starts_with(prefix));
  return last.substr(std::min(prefix.size(), last.size()));
}

}  // namespace muster::launcher

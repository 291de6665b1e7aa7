#pragma once

#include "base/endpoint.hpp"
#include "base/ids.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

namespace muster::ctl {

/// The environment variables that main read, by name.
using Environment = std::map<std::string, std::string>;

// What the operator asks. Names are any bytes.
struct Jobs {};
struct Status {
  std::string job;  ///< Empty: all.
};
struct Drain {
  std::string job;
  std::string node;
};
struct Restart {
  std::string job;
};
struct Stop {
  std::string job;
};
struct Sizes {
  std::string job;
  std::uint32_t min = 1;
  std::uint32_t max = 1;
};
struct Watch {
  std::string job;  ///< Empty: all.
};
using Request = std::variant<Jobs, Status, Drain, Restart, Stop, Sizes, Watch>;

struct Options {
  Request request;
  bool json = false;
  std::optional<Endpoint> server;               ///< nullopt: the one that this user runs here.
  std::optional<std::string> token_file;        ///< nullopt: what that server made.
  Duration timeout = std::chrono::seconds(10);  ///< For an answer.
};

/// The process is to print this and end.
struct PrintAndEnd {
  int code = 0;
  std::string out;
  std::string err;
};

/// Reads the command line, argv[0] included; docs/reference/musterctl.md lists what there is.
[[nodiscard]] std::variant<Options, PrintAndEnd> parse_command_line(
    std::span<const std::string> argv, const Environment& environment);

}  // namespace muster::ctl

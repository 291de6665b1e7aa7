#pragma once

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/log/log.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>

namespace muster::rendezvous {

constexpr std::uint16_t kDefaultPort = 29400;  ///< torchrun's, for c10d.

constexpr std::size_t kConnections = 40000;  ///< Of all kinds together.

/// The environment variables that main read, by name.
using Environment = std::map<std::string, std::string>;

/// How musterd is to run: flags, then the configuration file, then variables, then defaults.
struct DaemonOptions {
  /// nullopt: all addresses of the machine, port kDefaultPort. An empty host: all addresses.
  std::optional<Endpoint> listen;
  std::optional<std::string> token_file;  ///< nullopt: the attendance is open, and Control's token
                                          ///< is made by us.
  std::optional<std::string> state_folder;  ///< nullopt: nothing is remembered over a restart.
  bool state_folder_is_given = false;       ///< Not our own idea: it must be fit.
  Duration max_lease = std::chrono::seconds(60);
  std::size_t max_jobs = 1000;
  std::size_t max_nodes = 20000;
  std::optional<std::size_t>
      max_connections;  ///< nullopt: kConnections, or what descriptors allow.
  std::size_t max_store_memory = 2UL * 1024 * 1024 * 1024;
  spdlog::level::level_enum log_level = spdlog::level::info;
};

/// The process is to print this and end.
struct PrintAndEnd {
  int code = 0;  ///< 2: what was asked for makes no sense.
  std::string out;
  std::string err;
};

/// Reads the command line (argv[0] included), the file that `--config` names, and the variables
/// that stand for flags; docs/reference/musterd.md lists them.
[[nodiscard]] std::variant<DaemonOptions, PrintAndEnd> parse_daemon_options(
    std::span<const std::string> argv, const Environment& environment);

/// What is printed where `message` is wrong with how we were called.
[[nodiscard]] PrintAndEnd daemon_usage_error(const std::string& message);

}  // namespace muster::rendezvous

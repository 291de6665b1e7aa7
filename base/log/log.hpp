#pragma once

#include <optional>
#include <string_view>

#include <spdlog/spdlog.h>

namespace muster {

/// The process's own log goes through a spdlog::logger that main builds and hands down: event
/// words, then `key=value`.
using Logger = spdlog::logger;

/// A logger that writes `muster[node 0] 12:00:03.123 warn  text` to stderr. `prefix` stands in the
/// brackets; empty: none.
[[nodiscard]] std::shared_ptr<Logger> make_stderr_logger(std::string_view prefix,
                                                         spdlog::level::level_enum level);

/// A level by name: trace, debug, info, warn or warning, error, off (any case); nullopt if it is
/// none of these.
[[nodiscard]] std::optional<spdlog::level::level_enum> parse_log_level(std::string_view name);

}  // namespace muster

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <spdlog/spdlog.h>

namespace muster {

/// The process's own log goes through a spdlog::logger that main builds and hands down: event
/// words, then `key=value`. One thread.
using Logger = spdlog::logger;

/// A logger that writes `muster 12:00:03.123 warning text` to stderr.
[[nodiscard]] std::shared_ptr<Logger> make_stderr_logger(spdlog::level::level_enum level);

/// From now on the lines of such a logger go to `writer`, because a loop that must not be held up
/// owns stderr; an empty one: to stderr again.
void write_log_through(Logger& logger, const std::function<void(std::string)>& writer);

/// A level by name: trace, debug, info, warn or warning, error, off (any case); nullopt if it is
/// none of these.
[[nodiscard]] std::optional<spdlog::level::level_enum> parse_log_level(std::string_view name);

}  // namespace muster

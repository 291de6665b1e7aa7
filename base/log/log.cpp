#include "base/log/log.hpp"

#include <algorithm>
#include <cctype>
#include <string>

#include <spdlog/sinks/ansicolor_sink.h>

namespace muster {

std::shared_ptr<Logger> make_stderr_logger(std::string_view prefix,
                                           spdlog::level::level_enum level) {
  auto sink = std::make_shared<spdlog::sinks::ansicolor_stderr_sink_st>();
  auto logger = std::make_shared<Logger>("muster", std::move(sink));
  const std::string where = prefix.empty() ? "" : "[" + std::string(prefix) + "]";
  logger->set_pattern("%n" + where + " %H:%M:%S.%e %^%-5l%$ %v");
  logger->set_level(level);
  logger->flush_on(spdlog::level::trace);
  return logger;
}

std::optional<spdlog::level::level_enum> parse_log_level(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower == "warning" || lower == "warn") return spdlog::level::warn;
  if (lower == "error") return spdlog::level::err;
  if (lower == "critical" || lower == "fatal") return spdlog::level::critical;
  const auto level = spdlog::level::from_str(lower);
  if (level == spdlog::level::off && lower != "off") return std::nullopt;
  return level;
}

}  // namespace muster

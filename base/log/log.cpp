#include "base/log/log.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <string>

#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>

namespace muster {

namespace {

/// Stderr, until somebody else writes for us.
class StderrSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  std::function<void(std::string)> writer;

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (writer) {
      writer(std::string(line.data(), line.size()));
    } else {
      std::fwrite(line.data(), 1, line.size(), stderr);
    }
  }
  void flush_() override {}  // stderr has no buffer.
};

}  // namespace

std::shared_ptr<Logger> make_stderr_logger(spdlog::level::level_enum level) {
  auto logger = std::make_shared<Logger>("muster", std::make_shared<StderrSink>());
  logger->set_pattern("%n %H:%M:%S.%e %-7l %v");
  logger->set_level(level);
  return logger;
}

void write_log_through(Logger& logger, const std::function<void(std::string)>& writer) {
  for (const auto& sink : logger.sinks()) {
    if (auto* ours = dynamic_cast<StderrSink*>(sink.get())) ours->writer = writer;
  }
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

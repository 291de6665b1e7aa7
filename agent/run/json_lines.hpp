#pragma once

#include "agent/run/console.hpp"
#include "agent/run/line_sink.hpp"
#include "base/ids.hpp"
#include "base/log/log.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace muster::agent {

/// Makes one JSON object a line of what muster and the workers say (`--log-format json`;
/// docs/reference/flags.md has the keys).
class JsonFormat {
 public:
  struct Place {
    NodeRank node;
    std::uint32_t attempt;
  };

  explicit JsonFormat(std::string job) : job_(std::move(job)) {}

  /// From now on lines tell node rank and attempt.
  void begin_round(Place place) { place_ = place; }

  [[nodiscard]] std::string worker_line(Rank rank, std::string_view stream,
                                        std::string_view message) const;
  [[nodiscard]] std::string own_line(std::string_view level, std::string_view message) const;

 private:
  std::string job_;
  std::optional<Place> place_;
};

/// Makes this logger write such lines.
void log_as_json(Logger& logger, std::shared_ptr<const JsonFormat> format);

/// Shows a stream's lines on a console as JSON.
class JsonLines : public LineSink {
 public:
  JsonLines(Console& console, const JsonFormat& format, Rank rank, std::string_view stream)
      : console_(console), format_(format), rank_(rank), stream_(stream) {}

  void take(const Line& line) override;
  void flush() override;

 private:
  Console& console_;
  const JsonFormat& format_;
  Rank rank_;
  std::string_view stream_;
  std::string turn_;
};

}  // namespace muster::agent

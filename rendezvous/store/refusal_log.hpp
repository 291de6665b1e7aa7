#pragma once

#include "base/endpoint.hpp"
#include "base/ids.hpp"
#include "base/log/log.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::store {

/// Says why connections were closed, one line each, but not for as long as a port scan lasts:
/// beyond kLinesPerWindow in kWindow they are counted only, and the count is said with the next
/// line.
class RefusalLog {
 public:
  static constexpr std::uint32_t kLinesPerWindow = 30;
  static constexpr Duration kWindow = std::chrono::minutes(1);

  /// `who` closes them, for the lines.
  explicit RefusalLog(Logger& logger, std::string_view who = "store")
      : logger_(logger), who_(who) {}

  void refused(TimePoint now, const Endpoint& peer, std::string_view reason);

  /// `first`: the first bytes that came from the peer, as many as there are.
  void unknown_dialect(TimePoint now, const Endpoint& peer, std::string_view reason,
                       std::string_view first);

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

 private:
  [[nodiscard]] bool may_speak(TimePoint now);

  Logger& logger_;
  std::string_view who_;
  std::optional<TimePoint> window_start_;
  std::uint32_t lines_ = 0;
  std::uint64_t unsaid_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace muster::store

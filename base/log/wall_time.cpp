#include "base/log/wall_time.hpp"

#include <ctime>

#include <fmt/chrono.h>

namespace muster {
namespace {

constexpr std::int64_t kSecond = 1'000'000;
/// A day before the year 10000, in whatever time zone.
constexpr std::int64_t kLatest = 253'402'214'400 * kSecond;

/// Another machine may say anything.
bool is_sane(std::int64_t at) { return at > 0 && at < kLatest; }

std::string with_fraction(const std::tm& time, std::int64_t at, char between) {
  return fmt::format("{:%Y-%m-%d}{}{:%H:%M:%S}.{:06}", time, between, time, at % kSecond);
}

}  // namespace

std::string local_time(std::int64_t at) {
  if (!is_sane(at)) return {};
  return with_fraction(fmt::localtime(static_cast<std::time_t>(at / kSecond)), at, ' ');
}

std::string utc_time(std::int64_t at) {
  if (!is_sane(at)) return {};
  return with_fraction(fmt::gmtime(static_cast<std::time_t>(at / kSecond)), at, 'T') + "Z";
}

std::string local_clock_time(std::int64_t at) {
  if (!is_sane(at)) return {};
  const auto time = fmt::localtime(static_cast<std::time_t>(at / kSecond));
  return fmt::format("{:%H:%M:%S}.{:03}", time, at % kSecond / 1000);
}

}  // namespace muster

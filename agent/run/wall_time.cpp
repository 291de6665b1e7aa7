#include "agent/run/wall_time.hpp"

#include "base/posix/wall_clock.hpp"

#include <chrono>

#include <spdlog/details/os.h>
#include <spdlog/fmt/fmt.h>

namespace muster::agent {
namespace {

template <class Fraction>
struct Instant {
  std::time_t seconds;
  typename Fraction::rep fraction;
};

template <class Fraction>
Instant<Fraction> now() {
  const std::chrono::microseconds since(posix::wall_now());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
  return {seconds.count(), std::chrono::duration_cast<Fraction>(since - seconds).count()};
}

}  // namespace

std::string local_time_text() {
  const auto [seconds, fraction] = now<std::chrono::milliseconds>();
  const auto at = spdlog::details::os::localtime(seconds);
  return fmt::format("{:02}:{:02}:{:02}.{:03}", at.tm_hour, at.tm_min, at.tm_sec, fraction);
}

std::string utc_time_text() {
  const auto [seconds, fraction] = now<std::chrono::microseconds>();
  const auto at = spdlog::details::os::gmtime(seconds);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", at.tm_year + 1900, at.tm_mon + 1,
                     at.tm_mday, at.tm_hour, at.tm_min, at.tm_sec, fraction);
}

}  // namespace muster::agent

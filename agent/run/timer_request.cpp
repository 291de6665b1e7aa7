#include "agent/run/timer_request.hpp"

#include <algorithm>
#include <csignal>
#include <limits>

#include <boost/json.hpp>

namespace muster::agent {
namespace json = boost::json;
namespace {

constexpr std::int64_t kVersion = 1;
/// Whatever is later never expires. In the year 2255: nanoseconds must not overflow.
constexpr double kLatestSecond = 9e9;

tl::unexpected<Error> wrong(std::string_view what) {
  return fail(Errc::InvalidArgument, std::string(what));
}

std::optional<std::int64_t> integer(const json::object& object, std::string_view name) {
  const auto* const value = object.if_contains(name);
  if (value == nullptr || !value->is_int64()) return std::nullopt;
  return value->get_int64();
}

std::optional<double> number(const json::object& object, std::string_view name) {
  const auto* const value = object.if_contains(name);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->to_number<double>();
}

}  // namespace

Result<TimerRequest> parse_timer_request(std::string_view line) {
  json::error_code error;
  const auto document = json::parse(line, error);
  if (error) return wrong("it is not JSON: " + error.message());
  const auto* const object = document.if_object();
  if (object == nullptr) return wrong("it is no JSON object");
  if (integer(*object, "version") != kVersion) return wrong("its version is not 1");
  const auto pid = integer(*object, "pid");
  if (!pid || *pid < 1 || *pid > std::numeric_limits<int>::max()) return wrong("it has no pid");
  const auto* const scope = object->if_contains("scope_id");
  if (scope == nullptr || !scope->is_string()) return wrong("it has no scope_id");
  const auto expires = number(*object, "expiration_time");
  if (!expires) return wrong("it has no expiration_time");
  const auto signal = object->contains("signal") ? integer(*object, "signal") : SIGKILL;
  if (!signal || *signal > SIGRTMAX) return wrong("its signal is none");

  TimerRequest request{.pid = static_cast<int>(*pid),
                       .scope = std::string(scope->get_string()),
                       .expires = std::nullopt,
                       .signal = static_cast<int>(std::max<std::int64_t>(*signal, 0))};
  if (*expires >= 0) {
    const std::chrono::duration<double> since_1970(std::min(*expires, kLatestSecond));
    request.expires = WallTime(std::chrono::duration_cast<std::chrono::microseconds>(since_1970));
  }
  return request;
}

}  // namespace muster::agent

#pragma once

#include <cstdint>
#include <string>

/// Points in time as people read them; all in microseconds since 1970. Empty for what is unknown
/// (0) or makes no sense.
namespace muster {

/// `2026-11-30 01:02:03.123456`, by the time zone of this machine.
[[nodiscard]] std::string local_time(std::int64_t at);

/// `2026-11-30T01:02:03.123456Z`, as RFC 3339 has it.
[[nodiscard]] std::string utc_time(std::int64_t at);

/// `01:02:03.123`, by the time zone of this machine.
[[nodiscard]] std::string local_clock_time(std::int64_t at);

}  // namespace muster

#pragma once

#include <string>

namespace muster::agent {

/// Now, for people: local time, `14:03:27.125`.
[[nodiscard]] std::string local_time_text();

/// Now, for programs: RFC 3339 in UTC with microseconds, `2031-01-02T14:03:27.125042Z`.
[[nodiscard]] std::string utc_time_text();

}  // namespace muster::agent

#pragma once

#include "agent/core/file_timers.hpp"
#include "base/error.hpp"

#include <string_view>

namespace muster::agent {

/// A line that PyTorch's FileTimerClient writes: `{"version": 1, "pid": 77, "scope_id": "x",
/// "expiration_time": 1700000000.5, "signal": 9}`. A negative time releases the timer; without a
/// signal it is SIGKILL.
[[nodiscard]] Result<TimerRequest> parse_timer_request(std::string_view line);

}  // namespace muster::agent

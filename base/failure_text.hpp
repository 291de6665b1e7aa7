#pragma once

#include "base/membership.hpp"

#include <string>
#include <string_view>

namespace muster {

/// How a worker, or a node, failed, for people: "exited with code 3", "could not be started", "did
/// not end", "was lost".
[[nodiscard]] std::string how_it_failed(const WorkerFailure& failure);

/// With which Python begins a traceback.
constexpr std::string_view kTracebackHead = "Traceback (most recent call last):";

/// `ValueError: ...`: the last line of a traceback.
[[nodiscard]] std::string_view exception_of(std::string_view traceback);

}  // namespace muster

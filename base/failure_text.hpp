#pragma once

#include "base/membership.hpp"

#include <string>

namespace muster {

/// How a worker, or a node, failed, for people: "exited with code 3", "could not be started", "did
/// not end", "was lost".
[[nodiscard]] std::string how_it_failed(const WorkerFailure& failure);

}  // namespace muster

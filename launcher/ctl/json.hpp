#pragma once

#include <boost/json/object.hpp>

namespace muster::v1 {
class JobState;
class WatchedEvent;
}  // namespace muster::v1

/// What control.proto says, for programs. The keys are a promise: docs/reference/musterctl.md.
namespace muster::ctl {

[[nodiscard]] boost::json::object to_json(const v1::JobState& job, bool with_nodes);
[[nodiscard]] boost::json::object to_json(const v1::WatchedEvent& event);

}  // namespace muster::ctl

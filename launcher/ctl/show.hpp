#pragma once

#include <string>
#include <vector>

namespace muster::v1 {
class JobState;
class WatchedEvent;
}  // namespace muster::v1

/// What control.proto says, for people: fit for a terminal, lines that end.
namespace muster::ctl {

/// A table, a line for each job.
[[nodiscard]] std::string show_jobs(const std::vector<const v1::JobState*>& jobs);
/// All of a job, with its nodes.
[[nodiscard]] std::string show_job(const v1::JobState& job);
/// One line.
[[nodiscard]] std::string show_event(const v1::WatchedEvent& event);

}  // namespace muster::ctl

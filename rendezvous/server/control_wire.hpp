#pragma once

#include "base/ids.hpp"
#include "base/membership.hpp"
#include "rendezvous/core/job_view.hpp"

namespace muster::v1 {
class JobOutcome;
class JobRound;
class JobState;
}  // namespace muster::v1

/// Between what a job is and what control.proto says of it.
namespace muster::rendezvous {

enum class WithNodes { No, Yes };

void write(const JobView& view, WithNodes nodes, v1::JobState& state);
void write(const Verdict& verdict, v1::JobOutcome& outcome);
[[nodiscard]] RoundId read(const v1::JobRound& round);

}  // namespace muster::rendezvous

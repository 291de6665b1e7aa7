#pragma once

#include "base/ids.hpp"
#include "base/membership.hpp"
#include "rendezvous/core/job_view.hpp"

#include <cstddef>

namespace muster::v1 {
class JobOutcome;
class JobRound;
class JobState;
}  // namespace muster::v1

/// Between what a job is and what control.proto says of it.
namespace muster::rendezvous {

/// Brief: without nodes and the first cause with its evidence, texts cut to kBriefText: a list of
/// all jobs, those of the last hour included, is read in one piece.
enum class Extent { Brief, Whole };
constexpr std::size_t kBriefText = 256;  ///< Bytes, before what is not printable is written out.

void write(const JobView& view, Extent extent, v1::JobState& state);
void write(const Verdict& verdict, v1::JobOutcome& outcome);
[[nodiscard]] RoundId read(const v1::JobRound& round);

}  // namespace muster::rendezvous

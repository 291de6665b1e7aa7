#pragma once

#include "base/exit_codes.hpp"
#include "base/membership.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace muster::rendezvous {

/// Failures and victims beside the first cause that a verdict names at most: it goes to every node.
constexpr std::size_t kMostNamed = 64;
/// Of a round: what ended because others had. Those beyond are not named.
constexpr std::size_t kMostVictims = 4096;

/// "rank 2 on h1 exited with code 3", "node h1 was lost: its lease ended".
[[nodiscard]] std::string describe_failure(const WorkerFailure& failure);

/// Which of a round's failures, in order of arrival, is the first cause: the lowest class, and in
/// it the first to arrive. There is at least one.
[[nodiscard]] std::size_t first_cause(const std::vector<WorkerFailure>& failures);

/// The end of a job that this failure, of these, is the cause of.
[[nodiscard]] Verdict verdict_of(const std::vector<WorkerFailure>& failures, std::size_t cause);
/// Leaves of its evidence what is worth telling to each of very many nodes: the last few KiB.
void shorten(Verdict& verdict);

}  // namespace muster::rendezvous

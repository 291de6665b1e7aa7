#include "rendezvous/core/verdict.hpp"

#include "base/assert.hpp"

#include <algorithm>

namespace muster::rendezvous {
namespace {

int exit_code_of(const WorkerFailure& failure) {
  if (failure.cause == Cause::LostNode) return kRequeue;
  if (failure.status) return shell_code(*failure.status);
  return failure.user_error ? kUsage : kOwnError;
}

}  // namespace

std::string describe_failure(const WorkerFailure& failure) {
  if (failure.cause == Cause::LostNode) {
    const auto node = failure.node.empty() ? "node rank " + std::to_string(failure.node_rank.value)
                                           : "node " + failure.node;
    return node + " was lost" + (failure.detail.empty() ? "" : ": " + failure.detail);
  }
  auto text = "rank " + std::to_string(failure.rank.value);
  if (!failure.node.empty()) text += " on " + failure.node;
  if (!failure.status) return text + " could not be started";
  return text + " " + describe(*failure.status);
}

std::size_t first_cause(const std::vector<WorkerFailure>& failures) {
  MUSTER_ASSERT(!failures.empty());
  const auto first =
      std::min_element(failures.begin(), failures.end(),
                       [](const auto& a, const auto& b) { return a.cause < b.cause; });
  return static_cast<std::size_t>(first - failures.begin());
}

Verdict verdict_of(const std::vector<WorkerFailure>& failures, std::size_t cause) {
  MUSTER_ASSERT(cause < failures.size());
  Verdict verdict;
  verdict.exit_code = exit_code_of(failures[cause]);
  verdict.summary = describe_failure(failures[cause]);
  verdict.cause = failures[cause];
  for (std::size_t index = 0; index < failures.size(); ++index) {
    if (index != cause && verdict.others.size() < kMostNamed)
      verdict.others.push_back(failures[index]);
  }
  return verdict;
}

}  // namespace muster::rendezvous

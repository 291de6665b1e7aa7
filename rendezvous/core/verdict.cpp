#include "rendezvous/core/verdict.hpp"

#include "base/assert.hpp"
#include "base/failure_text.hpp"

#include <algorithm>

namespace muster::rendezvous {
namespace {

int exit_code_of(const WorkerFailure& failure) {
  if (failure.cause == Cause::LostNode) return kRequeue;
  if (failure.status && !failure.status->success()) return shell_code(*failure.status);
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
  return text + " " + how_it_failed(failure);
}

std::size_t first_cause(const std::vector<WorkerFailure>& failures) {
  MUSTER_ASSERT(!failures.empty());
  const auto first =
      std::min_element(failures.begin(), failures.end(),
                       [](const auto& a, const auto& b) { return a.cause < b.cause; });
  return static_cast<std::size_t>(first - failures.begin());
}

namespace {

/// Keeps the end of what is longer.
void keep_end(WorkerFailure& failure, std::size_t bytes) {
  auto& traceback = failure.traceback;
  if (traceback.size() > bytes) traceback.erase(0, traceback.size() - bytes);
  auto& lines = failure.stderr_lines;
  std::size_t kept = 0;
  std::size_t size = 0;
  while (kept < lines.size()) {
    size += lines[lines.size() - 1 - kept].size() + 1;
    if (size > bytes) break;
    ++kept;
  }
  lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(kept));
}

}  // namespace

void shorten(Verdict& verdict) {
  constexpr std::size_t kOfTheCause = 4096;
  constexpr std::size_t kOfOthers = 512;
  if (verdict.cause) keep_end(*verdict.cause, kOfTheCause);
  for (auto& other : verdict.others) keep_end(other, kOfOthers);
  if (verdict.victims.size() > kMostNamed) verdict.victims.resize(kMostNamed);
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

#include "rendezvous/core/solo_job.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

namespace muster::rendezvous {
namespace {

// Exit codes of protocol.md 5 that are no worker's own.
constexpr int kUsage = 2;
constexpr int kOwnError = 1;
constexpr int kSignalBase = 128;

std::string rank_text(const WorkerFailure& failure) {
  return "rank " + std::to_string(failure.rank.value);
}

std::string describe_failure(const WorkerFailure& failure) {
  if (!failure.status) return rank_text(failure) + " could not be started";
  return rank_text(failure) + " " + describe(*failure.status);
}

int exit_code_of(const WorkerFailure& failure) {
  if (failure.status) return shell_code(*failure.status);
  return failure.user_error ? kUsage : kOwnError;
}

}  // namespace

std::vector<Order> SoloJob::step(const Report& report) {
  return std::visit([this](const auto& event) { return on(event); }, report);
}

std::vector<Order> SoloJob::on(const Hello& hello) {
  if (!std::holds_alternative<Gathering>(phase_)) return {};
  MUSTER_ASSERT(hello.slots > 0);
  node_ = hello;
  return {next_assignment(hello.store)};
}

std::vector<Order> SoloJob::on(const Started& started) {
  if (is_current(started.round)) any_started_ = true;
  return {};
}

std::vector<Order> SoloJob::on(const Failed& failed) {
  if (!is_current(failed.round)) return {};
  any_started_ = any_started_ || failed.started > 0;
  if (leaving_ && failed.failure.status) {
    victims_.push_back({failed.failure.rank, *failed.failure.status});  // It was asked to leave.
    return {};
  }
  failures_.push_back(failed.failure);
  if (!std::holds_alternative<Running>(phase_)) return {};
  phase_ = Stopping{};
  return {Stop{round_, SIGTERM, describe_failure(failed.failure)}};
}

std::vector<Order> SoloJob::on(const Succeeded& succeeded) {
  if (is_current(succeeded.round) && std::holds_alternative<Running>(phase_)) phase_ = Finishing{};
  return {};
}

std::vector<Order> SoloJob::on(const Empty& empty) {
  if (!is_current(empty.round) || std::holds_alternative<Ended>(phase_)) return {};
  if (!leaving_ && !failures_.empty() && may_restart()) {
    ++restarts_;
    return {next_assignment(empty.next_store)};
  }
  if (!leaving_ && failures_.empty()) return end(Verdict{});
  auto verdict = leaving_ ? leaving_verdict() : failure_verdict();
  verdict.victims = empty.victims;
  verdict.victims.insert(verdict.victims.end(), victims_.begin(), victims_.end());
  return end(std::move(verdict));
}

std::vector<Order> SoloJob::on(const Stuck& stuck) {
  if (!is_current(stuck.round) || std::holds_alternative<Ended>(phase_)) return {};
  Verdict verdict;
  if (leaving_) {
    verdict = leaving_verdict();
  } else if (!failures_.empty()) {
    verdict = failure_verdict();
  } else {
    verdict.exit_code = kOwnError;
  }
  if (!verdict.summary.empty()) verdict.summary += "; ";
  verdict.summary += "these processes could not be killed:";
  for (const int pid : stuck.pids) verdict.summary += " " + std::to_string(pid);
  return end(std::move(verdict));
}

std::vector<Order> SoloJob::on(const Leaving& leaving) {
  if (std::holds_alternative<Ended>(phase_)) return {};
  const auto text = "the launcher got " + signal_name(leaving.signal);
  if (std::holds_alternative<Finishing>(phase_)) return {Stop{round_, leaving.signal, text}};
  leaving_ = leaving_.value_or(leaving.signal);
  if (std::holds_alternative<Gathering>(phase_)) return end(leaving_verdict());
  if (std::holds_alternative<Stopping>(phase_)) return {};  // One stop signal a round.
  phase_ = Stopping{};
  return {Stop{round_, leaving.signal, text}};
}

Assignment SoloJob::next_assignment(const Endpoint& store) {
  failures_.clear();
  victims_.clear();
  phase_ = Running{};
  round_ = RoundId{settings_.epoch, round_.number + 1};
  Assignment assignment;
  assignment.round = round_;
  assignment.attempt = attempts_++;
  assignment.restarts = restarts_;
  assignment.max_restarts = settings_.max_restarts;
  assignment.world_size = node_.slots;
  assignment.local_world_size = node_.slots;
  assignment.role_world_size = node_.slots;
  assignment.master = store;
  return assignment;
}

std::vector<Order> SoloJob::end(Verdict verdict) {
  verdict.attempts = attempts_;
  verdict.restarts = restarts_;
  verdict.max_restarts = settings_.max_restarts;
  phase_ = Ended{};
  return {std::move(verdict)};
}

Verdict SoloJob::failure_verdict() const {
  // The lowest cause; within a class the first to arrive.
  const auto first =
      std::min_element(failures_.begin(), failures_.end(),
                       [](const auto& a, const auto& b) { return a.cause < b.cause; });
  Verdict verdict;
  verdict.exit_code = exit_code_of(*first);
  verdict.summary = describe_failure(*first);
  verdict.cause = *first;
  for (auto it = failures_.begin(); it != failures_.end(); ++it) {
    if (it != first) verdict.others.push_back(*it);
  }
  return verdict;
}

/// The user's signal ended the job, unless a failure had done so already.
Verdict SoloJob::leaving_verdict() const {
  const auto text = "the launcher got " + signal_name(*leaving_);
  Verdict verdict = failures_.empty() ? Verdict{} : failure_verdict();
  verdict.summary = failures_.empty() ? text : verdict.summary + "; then " + text;
  if (failures_.empty() || may_restart()) verdict.exit_code = kSignalBase + *leaving_;
  return verdict;
}

bool SoloJob::may_restart() const { return any_started_ && restarts_ < settings_.max_restarts; }

}  // namespace muster::rendezvous

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
  if (leaving_) {
    Verdict verdict;
    verdict.exit_code = kSignalBase + *leaving_;
    verdict.summary = "the launcher got " + signal_name(*leaving_);
    verdict.victims = empty.victims;
    return end(std::move(verdict));
  }
  if (std::holds_alternative<Finishing>(phase_)) return end(Verdict{});
  MUSTER_ASSERT(!failures_.empty());
  if (any_started_ && restarts_ < settings_.max_restarts) {
    ++restarts_;
    return {next_assignment(empty.next_store)};
  }
  return end(failure_verdict(empty.victims));
}

std::vector<Order> SoloJob::on(const Stuck& stuck) {
  if (!is_current(stuck.round) || std::holds_alternative<Ended>(phase_)) return {};
  Verdict verdict = failures_.empty() ? Verdict{} : failure_verdict({});
  if (failures_.empty()) verdict.exit_code = leaving_ ? kSignalBase + *leaving_ : kOwnError;
  if (!verdict.summary.empty()) verdict.summary += "; ";
  verdict.summary += "these processes could not be killed:";
  for (const int pid : stuck.pids) verdict.summary += " " + std::to_string(pid);
  return end(std::move(verdict));
}

std::vector<Order> SoloJob::on(const Leaving& leaving) {
  if (std::holds_alternative<Ended>(phase_)) return {};
  leaving_ = leaving_.value_or(leaving.signal);
  if (std::holds_alternative<Gathering>(phase_)) {
    Verdict verdict;
    verdict.exit_code = kSignalBase + *leaving_;
    verdict.summary = "the launcher got " + signal_name(*leaving_);
    return end(std::move(verdict));
  }
  if (std::holds_alternative<Stopping>(phase_))
    return {};  // A worker gets one stop signal a round.
  phase_ = Stopping{};
  return {Stop{round_, leaving.signal, "the launcher got " + signal_name(leaving.signal)}};
}

Assignment SoloJob::next_assignment(const Endpoint& store) {
  failures_.clear();
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

Verdict SoloJob::failure_verdict(std::vector<Victim> victims) const {
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
  verdict.victims = std::move(victims);
  return verdict;
}

}  // namespace muster::rendezvous

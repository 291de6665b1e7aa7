#include "rendezvous/core/job.hpp"
#include "rendezvous/core/verdict.hpp"

#include <csignal>
#include <set>
#include <utility>

// What operators ask. Each command is safe to repeat.
namespace muster::rendezvous {
namespace {

std::string round_text(const std::optional<RoundId>& round) {
  if (!round) return "no round";
  return "round " + std::to_string(round->number) + " of epoch " + std::to_string(round->epoch);
}

}  // namespace

void Job::command(TimePoint now, CommandId id, const Command& command) {
  auto outcome = std::visit([&](const auto& one) { return carry_out(now, one); }, command);
  actions_.emplace_back(action::Answer{id, std::move(outcome)});
  entrust_all();
  advance(now);
}

/// What was asked for is told to the agents: a server that forgets learns it again from them.
void Job::entrust(Member& member) {
  if (verdict_ || member.released) return;
  Keep keep;
  if (sizes_by_hand_) keep.sizes = {sizes_.min, sizes_.max};
  keep.drained = member.departure && member.departure->drained;
  keep.ended = ordered_end_.has_value();
  if (keep == member.kept) return;
  member.kept = keep;
  order(member, keep);
}

void Job::entrust_all() {
  for (auto& [incarnation, member] : roster_.members()) entrust(member);
}

Verdict Job::operators_end() {
  Verdict verdict;
  verdict.exit_code = kSignalBase + SIGTERM;
  verdict.summary = "an operator stopped the job";
  return verdict;
}

/// Set by hand; nullopt: nothing.
std::optional<std::string> Job::what_is_wrong_with(const Sizes& sizes) const {
  if (auto wrong = what_is_wrong(sizes)) return wrong;
  if (settings_.lease == Duration::zero() && sizes.max > 1)
    return "it can have one node only: it has no lease";
  return std::nullopt;
}

/// What is wrong with a command that believes the job to be in `round`.
std::optional<Error> Job::staleness(const std::optional<RoundId>& round) const {
  const auto current = round_ ? std::optional(round_->id()) : last_round_;
  if (!round || round == current) return std::nullopt;
  return Error{Errc::Stale, "job " + id_ + " is not in " + round_text(round) + " any more but in " +
                                round_text(current) + ": look again"};
}

Result<std::string> Job::carry_out(TimePoint now, const DrainNode& command) {
  if (verdict_) return fail(Errc::NotFound, "job " + id_ + " has ended");
  auto found = find_node(command.node);
  if (!found) return pass(std::move(found.error()));
  auto& member = **found;
  const auto name = called(member.hello);
  if (member.departure) return name + " leaves already: " + member.departure->reason;
  if (auto stale = staleness(command.round)) return pass(std::move(*stale));
  const bool in_round = round_ && place_of(member, round_->id()) != nullptr;
  depart(now, member, Departure{.drained = true, .reason = "an operator drained the node"},
         Duration::zero());
  return name + (in_round ? " is drained: it leaves once all workers have saved"
                          : " is drained: it was in no round");
}

Result<std::string> Job::carry_out(TimePoint now, const RestartJob& command) {
  if (verdict_) return fail(Errc::NotFound, "job " + id_ + " has ended");
  if (auto stale = staleness(command.round)) return pass(std::move(*stale));
  if (!std::holds_alternative<Running>(phase_)) return std::string("a new round is coming already");
  stop_round(now, "an operator restarts the job", Round::StoppedFor::Change);
  return round_text(round_->id()) + " is stopped, the next one follows";
}

Result<std::string> Job::carry_out(TimePoint now, const StopJob& command) {
  if (verdict_) return std::string("the job has ended already");
  if (ordered_end_) return std::string("the job is being stopped already");
  if (auto stale = staleness(command.round)) return pass(std::move(*stale));
  auto verdict = operators_end();
  if (!round_ && in_recovery(now)) {  // Nodes that run a round may still come back.
    ordered_end_ = std::move(verdict);
    return std::string("the job is stopped when its nodes are back, or given up");
  }
  if (!round_) {
    end(now, std::move(verdict));
    return std::string("the job is stopped");
  }
  const auto words = verdict.summary;
  ordered_end_ = std::move(verdict);
  if (round_->stop()) {
    round_->count_no_failure_any_more();
  } else {
    stop_round(now, words, Round::StoppedFor::Leaving);
  }
  return std::string("the job is being stopped");
}

Result<std::string> Job::carry_out(TimePoint now, const SetSizes& command) {
  if (verdict_) return fail(Errc::NotFound, "job " + id_ + " has ended");
  const Sizes sizes{command.min, command.max, sizes_.step};
  if (auto stale = staleness(command.round)) return pass(std::move(*stale));
  if (const auto wrong = what_is_wrong_with(sizes))
    return fail(Errc::InvalidArgument, "set the sizes of job " + id_ + ": " + *wrong);
  const auto text =
      "the job may have " + range_text(sizes) + (sizes.largest() == 1 ? " node" : " nodes");
  if (sizes == sizes_) return text + " already";
  sizes_ = sizes;
  sizes_by_hand_ = true;
  note(text + ", set by an operator");
  changed(now);
  if (!std::holds_alternative<Running>(phase_)) return text;
  auto& running = std::get<Running>(phase_);
  const auto present = round_->places().size();
  if (present > sizes_.largest()) {
    stop_round(now, "an operator set a smaller size: " + text, Round::StoppedFor::Change);
  } else if (roster_.counts().ready > 0) {
    running.spare_came = running.spare_came.value_or(now);
  }
  return text;
}

/// By what the operator called it: one node, or an error that lists those that it may be.
Result<Member*> Job::find_node(const std::string& node) {
  std::vector<Member*> matches;
  for (auto& [incarnation, member] : roster_.members()) {
    const auto* place = round_ ? round_->find(incarnation) : nullptr;
    const bool by_rank =
        place != nullptr && std::to_string(place->assignment.node_rank.value) == node;
    if (by_rank || member.hello.name == node || member.peer == node || address_of(member) == node ||
        member.hello.machine == node || incarnation.value == node)
      matches.push_back(&member);
  }
  if (matches.size() == 1) return matches.front();
  if (matches.empty()) return fail(Errc::NotFound, "job " + id_ + " has no node \"" + node + "\"");
  std::string text =
      std::to_string(matches.size()) + " nodes of job " + id_ + " are called \"" + node + "\":";
  constexpr std::size_t kMostListed = 8;
  for (std::size_t index = 0; index < matches.size() && index < kMostListed; ++index) {
    const auto& hello = matches[index]->hello;
    text += " " + hello.name + " (" + address_of(*matches[index]) + ", incarnation " +
            hello.incarnation.value + ")";
  }
  return fail(Errc::InvalidArgument, text + (matches.size() > kMostListed ? " ..." : ""));
}

}  // namespace muster::rendezvous

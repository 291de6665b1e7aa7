#include "tests/sim/membership_truth.hpp"

#include <algorithm>

namespace muster::sim {
namespace {

std::string text(RoundId round) {
  return "(" + std::to_string(round.epoch >> 32U) + "." +
         std::to_string(round.epoch & 0xFFFFFFFFU) + ", " + std::to_string(round.number) + ")";
}

}  // namespace

void Truth::assigned(std::uint64_t server, const std::vector<Place>& places) {
  std::set<RoundId> fresh;
  for (const auto& place : places) {
    const auto& assignment = place.assignment;
    const auto [found, is_new] = rounds_.try_emplace(assignment.round);
    auto& round = found->second;
    if (is_new) {
      fresh.insert(assignment.round);
      if (verdict_ && !verdict_lost_) breaks("a round formed after the verdict");
      round.server = server;
      round.world = assignment.world_size;
      round.nodes = assignment.nodes;
      round.attempt = assignment.attempt;
      if (assignment.restarts > budget_ || assignment.max_restarts != budget_)
        breaks("more restarts than the budget");
      if (assignment.restarts > failed_rounds_ && !verdict_lost_)
        breaks("a restart was charged that no worker's failure explains");
      fruitless_ = std::max(fruitless_, assignment.fruitless);
      if (most_fruitless_ && assignment.fruitless >= *most_fruitless_)
        breaks("an attempt follows as many fruitless ones as end the job");
      if (assignment.fruitless > failed_rounds_ && !verdict_lost_)
        breaks("an attempt counts as fruitless that no worker's failure explains");
      if (assignment.best_step > highest_step_) breaks("a step to beat that nobody told");
    }
    if (round.server != server) breaks("round " + text(assignment.round) + " was named twice");
    if (round.world != assignment.world_size || round.attempt != assignment.attempt ||
        round.nodes != assignment.nodes)
      breaks("the nodes of round " + text(assignment.round) + " were told different things");
    const std::pair given{assignment.rank_offset.value, place.slots};
    const auto before = round.places.try_emplace(place.node, given).first->second;
    if (before != given) breaks("a node's ranks of one round changed");
  }
  for (const auto& id : fresh) {
    const auto& round = rounds_.at(id);
    // One whose connection is gone is told later.
    const bool all_told = round.places.size() == round.nodes;
    std::set<std::pair<std::uint32_t, std::uint32_t>> in_order;
    for (const auto& [node, place] : round.places) in_order.insert(place);
    std::uint32_t next = 0;
    for (const auto& [offset, slots] : in_order) {
      if (offset < next || (all_told && offset != next))
        breaks("the ranks of round " + text(id) + " have gaps or overlap");
      next = offset + slots;
    }
    if (next > round.world || (all_told && next != round.world) ||
        in_order.size() != round.places.size())
      breaks("the ranks of round " + text(id) + " are not its world");
  }
}

void Truth::told_to_start(std::size_t node, RoundId round) {
  auto& named = named_[node];
  if (round <= named) breaks("a stale order was obeyed: round " + text(round));
  named = std::max(named, round);
}

void Truth::told_to_stop(std::size_t node, RoundId round) {
  auto& named = named_[node];
  named = std::max(named, round);
}

void Truth::worker_runs(std::size_t node, RoundId round, std::uint32_t rank) {
  for (const auto& other : running_) {
    if (other.round != round)
      breaks("rank " + std::to_string(rank) + " of round " + text(round) + " started on node " +
             std::to_string(node) + " while rank " + std::to_string(other.rank) + " of round " +
             text(other.round) + " ran on node " + std::to_string(other.node));
    if (other.round == round && other.rank == rank)
      breaks("rank " + std::to_string(rank) + " has two holders");
  }
  running_.push_back({node, round, rank});
  ++rounds_[round].running;
}

void Truth::worker_ended(std::size_t node, RoundId round, std::uint32_t rank) {
  const auto found = std::find(running_.begin(), running_.end(), Running{node, round, rank});
  if (found == running_.end()) return;
  running_.erase(found);
  --rounds_[round].running;
}

void Truth::worker_succeeded(RoundId round, std::uint32_t rank) {
  rounds_[round].succeeded.insert(rank);
}

void Truth::worker_failed(RoundId round) {
  if (std::exchange(rounds_[round].failed, true)) return;
  ++failed_rounds_;
}

bool Truth::is_complete(RoundId round) const {
  const auto& found = rounds_.at(round);
  return found.running + found.succeeded.size() == found.world;
}

std::vector<std::size_t> Truth::members(RoundId round) const {
  std::vector<std::size_t> members;
  for (const auto& [node, place] : rounds_.at(round).places) members.push_back(node);
  return members;
}

bool Truth::has_succeeded(RoundId id, std::size_t node) const {
  const auto& round = rounds_.at(id);
  const auto [offset, slots] = round.places.at(node);
  for (auto rank = offset; rank < offset + slots; ++rank) {
    if (!round.succeeded.contains(rank)) return false;
  }
  return true;
}

void Truth::verdict_told(const Verdict& verdict) {
  if (verdict.alone || verdict_lost_) return;
  if (verdict_) {
    if (verdict_->exit_code != verdict.exit_code)
      breaks("two verdicts: " + std::to_string(verdict_->exit_code) + " (" + verdict_->summary +
             ") and " + std::to_string(verdict.exit_code) + " (" + verdict.summary + ")");
    return;
  }
  verdict_ = verdict;
  if (verdict.restarts > budget_) breaks("more restarts than the budget");
  const bool trained = std::any_of(rounds_.begin(), rounds_.end(), [](const auto& entry) {
    return entry.second.world > 0 && entry.second.succeeded.size() == entry.second.world;
  });
  constexpr int kNoProgress = 93;
  if (verdict.exit_code == kNoProgress && (!most_fruitless_ || fruitless_ + 1 < *most_fruitless_))
    breaks("the job ended for want of progress too soon");
  if (verdict.exit_code == 0 && !trained) breaks("a success that never was");
  if (verdict.cause && verdict.cause->cause == Cause::PeerLoss)
    breaks("a victim was called the cause");
}

void Truth::breaks(const std::string& rule) {
  if (broken_.empty()) broken_ = rule;
}

}  // namespace muster::sim

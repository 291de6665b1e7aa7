#pragma once

#include "base/membership.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster::sim {

/// Sees everything at every instant of true time, and remembers the first rule that broke:
///
/// - a round's ranks are unique and without gaps, and its name is never used again;
/// - a worker starts only when none of another round runs, and none has its rank;
/// - no order to start names a round that is not above all that were named to the node;
/// - a restart is charged only for a round in which a worker failed by itself, within the budget;
/// - no attempt follows as many failed ones without progress as the limit names, and no job ends
/// for
///   want of progress before; a step to beat is one that a worker told;
/// - success is every rank's exit with 0 in one round; the verdict is the same everywhere;
/// - no round forms after the verdict.
class Truth {
 public:
  /// `budget`: restarts that may be charged.
  explicit Truth(std::uint32_t budget) : budget_(budget) {}
  [[nodiscard]] std::uint32_t budget() const { return budget_; }
  /// So many failed attempts in a row without progress end the job.
  void limit_fruitless(std::uint32_t attempts) { most_fruitless_ = attempts; }

  /// A server gave out these places, in one step.
  struct Place {
    std::size_t node;
    std::uint32_t slots;
    Assignment assignment;
  };
  void assigned(std::uint64_t server, const std::vector<Place>& places);
  /// The node's worker group was told to start, or to stop, this round.
  void told_to_start(std::size_t node, RoundId round);
  void told_to_stop(std::size_t node, RoundId round);

  void worker_runs(std::size_t node, RoundId round, std::uint32_t rank);
  void worker_ended(std::size_t node, RoundId round, std::uint32_t rank);
  void worker_succeeded(RoundId round, std::uint32_t rank);
  void worker_told(std::uint64_t step) { highest_step_ = std::max(highest_step_, step); }
  /// By itself: not asked to, not killed, not for want of a peer.
  void worker_failed(RoundId round);
  /// Of these ranks all run or have succeeded: a collective would go through.
  [[nodiscard]] bool is_complete(RoundId round) const;

  [[nodiscard]] std::vector<std::size_t> members(RoundId round) const;
  /// All workers of the node have, in this round.
  [[nodiscard]] bool has_succeeded(RoundId round, std::size_t node) const;

  void verdict_told(const Verdict& verdict);
  /// It is the one that was told, or of one node only.
  [[nodiscard]] bool agrees_with(const Verdict& verdict) const {
    return verdict.alone || !verdict_ || verdict_->exit_code == verdict.exit_code;
  }
  /// It may be unknown to all from now on, by no fault of anybody: what follows is another job.
  void verdict_lost() { verdict_lost_ = true; }
  [[nodiscard]] bool has_verdict() const { return verdict_.has_value(); }
  [[nodiscard]] bool is_verdict_lost() const { return verdict_lost_; }

  void breaks(const std::string& rule);
  [[nodiscard]] const std::string& broken() const { return broken_; }
  [[nodiscard]] std::size_t rounds() const { return rounds_.size(); }

 private:
  struct Round {
    std::uint64_t server = 0;
    std::uint32_t world = 0;
    std::uint32_t nodes = 0;
    std::uint32_t attempt = 0;
    std::map<std::size_t, std::pair<std::uint32_t, std::uint32_t>>
        places;  // By node: offset, slots.
    std::set<std::uint32_t> succeeded;
    std::uint32_t running = 0;
    bool failed = false;
  };
  struct Running {
    std::size_t node;
    RoundId round;
    std::uint32_t rank;
    bool operator==(const Running&) const = default;
  };

  std::uint32_t budget_;
  std::map<RoundId, Round> rounds_;
  std::map<std::size_t, RoundId> named_;  // By node: the highest.
  std::vector<Running> running_;
  std::uint32_t failed_rounds_ = 0;
  std::optional<std::uint32_t> most_fruitless_;
  std::uint32_t fruitless_ = 0;  // The most that an Assignment named.
  std::uint64_t highest_step_ = 0;
  std::optional<Verdict> verdict_;
  bool verdict_lost_ = false;
  std::string broken_;
};

}  // namespace muster::sim

#include "rendezvous/core/round.hpp"

#include "rendezvous/core/verdict.hpp"

#include <algorithm>
#include <utility>

namespace muster::rendezvous {
namespace {

bool lost_a_peer(const WorkerFailure& failure) {
  return failure.cause == Cause::PeerLoss && failure.status;
}

}  // namespace

Round::Place& Round::add(Place place) {
  by_incarnation_.emplace(place.incarnation, places_.size());
  workers_ += place.slots;
  count(place, 1);
  places_.push_back(std::move(place));
  return places_.back();
}

Round::Place* Round::find(const Incarnation& incarnation) {
  const auto found = by_incarnation_.find(incarnation);
  return found == by_incarnation_.end() ? nullptr : &places_[found->second];
}

const Round::Place* Round::find(const Incarnation& incarnation) const {
  const auto found = by_incarnation_.find(incarnation);
  return found == by_incarnation_.end() ? nullptr : &places_[found->second];
}

Round::Place* Round::with_node_rank(NodeRank rank) {
  // Places stand by node rank, but for a round that was learned from its members.
  if (rank.value < places_.size() && places_[rank.value].assignment.node_rank == rank)
    return &places_[rank.value];
  const auto found = std::find_if(places_.begin(), places_.end(), [rank](const Place& place) {
    return place.assignment.node_rank == rank;
  });
  return found == places_.end() ? nullptr : &*found;
}

void Round::count(const Place& place, std::uint32_t by) {
  answered_ += by * static_cast<std::uint32_t>(place.answered());
  over_ += by * static_cast<std::uint32_t>(place.over());
  succeeded_ += by * static_cast<std::uint32_t>(place.succeeded);
  if (!place.over()) still_saving_ += by * place.saving.value_or(place.slots);
}

template <class Change>
void Round::change(Place& place, Change change) {
  constexpr auto kMinusOne = ~std::uint32_t{0};  // Unsigned numbers wrap around.
  count(place, kMinusOne);
  change(place);
  count(place, 1);
}

void Round::note_succeeded(Place& place) {
  change(place, [](Place& one) { one.succeeded = true; });
}
void Round::note_stopped(Place& place) {
  change(place, [](Place& one) { one.stopped = true; });
}
void Round::note_empty(Place& place) {
  change(place, [](Place& one) { one.empty = true; });
}
void Round::note_gone(Place& place) {
  if (!place.gone && gone_.size() < kMostNamed) gone_.push_back(place.incarnation);
  change(place, [](Place& one) { one.gone = true; });
}
void Round::note_saving(Place& place, std::uint32_t left) {
  change(place, [left](Place& one) { one.saving = std::min(left, one.slots); });
}

bool Round::note_progress(TimePoint now, Place& place, const std::vector<WorkerProgress>& workers) {
  std::map<Rank, std::uint64_t> saves;
  for (const auto& worker : place.progress) saves.emplace(worker.rank, worker.saves);
  bool saved = false;
  for (const auto& worker : workers) {
    highest_step_ = std::max(highest_step_, worker.step);
    saved = saved || worker.saves > saves[worker.rank];
  }
  has_progress_ = has_progress_ || !workers.empty();
  place.progress = workers;
  place.progress_at = now;
  return saved;
}

bool Round::add_failure(const WorkerFailure& failure) {
  highest_step_ = std::max(highest_step_, failure.step.value_or(0));
  const bool node = failure.cause == Cause::LostNode;
  const auto which = node ? failure.node_rank.value : failure.rank.value;
  if (!failed_.emplace(node, which).second) return false;
  if (failures_.size() <= kMostNamed) {
    failures_.push_back(failure);
  } else if ((!cause_ || failures_[*cause_].cause == Cause::PeerLoss) &&
             failure.cause < failures_[first_cause(failures_)].cause) {
    failures_.back() = failure;
  }
  return true;
}

void Round::excuse() {
  excused_ = true;
  if (failures_.empty()) return;
  for (const auto& failure : failures_) {
    if (lost_a_peer(failure)) add_victims({{failure.rank, *failure.status}});
  }
  if (cause_ && lost_a_peer(failures_[*cause_])) cause_.reset();
  if (cause_) {  // What was decided stands.
    const auto decided = failures_.begin() + static_cast<std::ptrdiff_t>(*cause_);
    *cause_ -= static_cast<std::size_t>(std::count_if(failures_.begin(), decided, lost_a_peer));
  }
  std::erase_if(failures_, lost_a_peer);
  if (stop_ && failures_.empty() && stopped_for_ == StoppedFor::Failure)
    stopped_for_ = StoppedFor::Change;
}

void Round::add_victims(const std::vector<Victim>& victims) {
  const auto room = kMostVictims - std::min(kMostVictims, victims_.size());
  const auto taken = static_cast<std::ptrdiff_t>(std::min(room, victims.size()));
  victims_.insert(victims_.end(), victims.begin(), victims.begin() + taken);
}

void Round::stop(Stop stop, StoppedFor why) {
  stop_ = std::move(stop);
  stopped_for_ = why;
  if (why != StoppedFor::Failure) excuse();
}

void Round::decide_cause() {
  if (failures_.empty()) return;
  if (cause_ && failures_[*cause_].cause != Cause::PeerLoss) return;
  cause_ = first_cause(failures_);
}

}  // namespace muster::rendezvous

#include "rendezvous/core/recovery.hpp"

#include <algorithm>

namespace muster::rendezvous {

void Recovery::hear(const Incarnation& incarnation, const Held& held) {
  highest_named_ = std::max({highest_named_, held.highest, held.round.value_or(RoundId{})});
  if (!held.round || (highest_ && *held.round < *highest_)) return;
  if (!highest_ || *held.round > *highest_) {
    highest_ = held.round;
    nodes_ = 0;
    any_unfinished_ = false;
    accounted_.clear();
    gone_.clear();
    broken_.clear();
    for (const auto& [departed, round] : departed_) {
      if (round == *highest_) account_for(departed);
    }
  }
  nodes_ = std::max(nodes_, held.nodes);
  accounted_.insert(incarnation);
  if (!held.unbroken) broken_.insert(incarnation);
  if (!held.empty) any_unfinished_ = true;
  for (const auto& gone : held.gone) account_for(gone);
}

void Recovery::departed(const Incarnation& incarnation, RoundId round) {
  highest_named_ = std::max(highest_named_, round);
  departed_[incarnation] = round;
  if (highest_ == round) account_for(incarnation);
}

void Recovery::account_for(const Incarnation& gone) {
  accounted_.insert(gone);
  gone_.insert(gone);
  broken_.erase(gone);
}

std::optional<Incarnation> Recovery::gone() const {
  if (gone_.empty()) return std::nullopt;
  return *gone_.begin();
}

bool Recovery::complete() const {
  return highest_ && highest_named_ <= *highest_ && any_unfinished_ && broken_.empty() &&
         missing() == 0;
}

std::size_t Recovery::missing() const {
  return accounted_.size() >= nodes_ ? 0 : nodes_ - accounted_.size();
}

}  // namespace muster::rendezvous

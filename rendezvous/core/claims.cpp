#include "rendezvous/core/claims.hpp"

#include <algorithm>

namespace muster::rendezvous {

bool Claims::claim(TimePoint now, NodeRank rank, const Incarnation& incarnation) {
  const auto [found, is_new] = by_rank_.try_emplace(rank, Claim{incarnation, {}});
  auto& claim = found->second;
  if (is_new || claim.holder == incarnation) return true;
  const bool waits = std::any_of(claim.waiters.begin(), claim.waiters.end(),
                                 [&](const auto& one) { return one.incarnation == incarnation; });
  if (!waits) claim.waiters.push_back({rank, incarnation, now});
  return false;
}

std::optional<Incarnation> Claims::give_up(NodeRank rank, const Incarnation& incarnation) {
  const auto found = by_rank_.find(rank);
  if (found == by_rank_.end()) return std::nullopt;
  auto& claim = found->second;
  if (claim.holder != incarnation) {
    std::erase_if(claim.waiters, [&](const auto& one) { return one.incarnation == incarnation; });
    return std::nullopt;
  }
  if (claim.waiters.empty()) {
    by_rank_.erase(found);
    return std::nullopt;
  }
  claim.holder = claim.waiters.front().incarnation;
  claim.waiters.pop_front();
  return claim.holder;
}

std::optional<Incarnation> Claims::holder(NodeRank rank) const {
  const auto found = by_rank_.find(rank);
  if (found == by_rank_.end()) return std::nullopt;
  return found->second.holder;
}

std::vector<Claims::Waiter> Claims::waiters() const {
  std::vector<Waiter> all;
  for (const auto& [rank, claim] : by_rank_)
    all.insert(all.end(), claim.waiters.begin(), claim.waiters.end());
  return all;
}

}  // namespace muster::rendezvous

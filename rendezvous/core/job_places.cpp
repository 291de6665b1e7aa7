#include "rendezvous/core/address.hpp"
#include "rendezvous/core/job.hpp"
#include "rendezvous/core/settings.hpp"
#include "rendezvous/core/verdict.hpp"

#include <algorithm>
#include <set>
#include <utility>

// Places of nodes: addresses, given node ranks, machines that are passed over.
namespace muster::rendezvous {

/// A node on the server's machine comes over loopback: what its peers call that machine is what
/// they dialled to come here.
void Job::note_server_address(const Member& member) {
  if (!is_loopback(member.peer) && !is_loopback(member.local) && !is_unspecified(member.local))
    server_address_ = member.local;
}

std::string Job::address_of(const Member& member) const {
  if (!is_loopback(member.peer) && !is_unspecified(member.peer)) return member.peer;
  return server_address_.empty() ? member.peer : server_address_;
}

Endpoint Job::master_of(const Member& member, std::size_t nodes) const {
  const auto& hello = member.hello;
  auto master = hello.store;
  const bool names_none = is_unspecified(master.host);
  if (hello.store_is_fixed || (!names_none && (!is_loopback(master.host) || nodes == 1)))
    return master;
  const auto address = address_of(member);
  if (!is_unspecified(address) && (names_none || !is_loopback(address))) master.host = address;
  return master;
}

std::vector<std::string> Job::admitted(const std::vector<Member*>& members) const {
  std::set<std::string> addresses;
  for (const auto* member : members) {
    addresses.insert(member->hello.addresses.begin(), member->hello.addresses.end());
    if (!member->peer.empty()) addresses.insert(address_of(*member));
  }
  return {addresses.begin(), addresses.end()};
}

void Job::remember_places(const Round& round) {
  std::vector<const Round::Place*> places;
  for (const auto& place : round.places()) places.push_back(&place);
  std::sort(places.begin(), places.end(), [](const auto* a, const auto* b) {
    return a->assignment.node_rank < b->assignment.node_rank;
  });
  past_.clear();
  for (const auto* place : places) {
    // A round that was learned from its members may have gaps.
    while (past_.size() < place->assignment.node_rank.value && past_.size() < kMostGone)
      past_.emplace_back();
    past_.push_back({place->incarnation, place->machine});
  }
}

Incarnation Job::round_member(const Round& round, NodeRank node_rank) const {
  const auto found = std::find_if(
      round.places().begin(), round.places().end(),
      [node_rank](const auto& place) { return place.assignment.node_rank == node_rank; });
  return found == round.places().end() ? Incarnation{} : found->incarnation;
}

void Job::claim(TimePoint now, Member& member) {
  if (!member.hello.node_rank) return;
  const auto rank = *member.hello.node_rank;
  if (claims_.claim(now, rank, member.hello.incarnation)) return;
  roster_.change(member, [](Member& one) { one.contends = true; });
  note(action::Note::Level::Warn, called(member.hello) + " waits: node rank " +
                                      std::to_string(rank.value) + " is another's still");
  const auto settle = now + roster_.give_away_after();
  settle_claims_at_ = settle_claims_at_ ? std::min(*settle_claims_at_, settle) : settle;
}

void Job::free_claim(TimePoint now, Member& member) {
  if (!member.hello.node_rank) return;
  const auto next = claims_.give_up(*member.hello.node_rank, member.hello.incarnation);
  if (!next) return;
  if (auto* heir = roster_.find(*next)) {
    roster_.change(*heir, [](Member& one) { one.contends = false; });
    if (auto* running = std::get_if<Running>(&phase_)) running->spare_came = now;
  }
}

/// Two that claim one node rank and both live on: a mistake of the user's. The second is refused.
void Job::settle_claims(TimePoint now) {
  if (!settle_claims_at_ || now < *settle_claims_at_) return;
  settle_claims_at_.reset();
  for (const auto& waiter : claims_.waiters()) {
    auto* second = roster_.find(waiter.incarnation);
    const auto holder = claims_.holder(waiter.rank);
    const auto* first = holder ? roster_.find(*holder) : nullptr;
    if (first == nullptr || second == nullptr) continue;
    auto settle = waiter.since + roster_.give_away_after();
    if (now >= settle && first->there && second->there) {
      refuse_claim(now, *first, *second);
      continue;
    }
    if (now >= settle) settle = now + roster_.lease() / 2;  // One is silent: it may be gone soon.
    settle_claims_at_ = settle_claims_at_ ? std::min(*settle_claims_at_, settle) : settle;
  }
}

void Job::refuse_claim(TimePoint now, const Member& first, Member& second) {
  const auto text = "--node-rank " + std::to_string(second.hello.node_rank->value) + " of node " +
                    second.hello.name + " (" + address_of(second) + ") is that of node " +
                    first.hello.name + " (" + address_of(first) + ") as well: give each its own";
  send(second, Refusal{text, kUsage});
  if (second.link) actions_.emplace_back(action::Close{*second.link});
  roster_.change(second, [&](Member& one) { one.departure = Departure{.reason = text}; });
  remove(now, second.hello.incarnation, "refused: " + text, false);
}

void Job::blame(TimePoint now, const std::string& machine, TimePoint joined,
                const std::string& reason) {
  if (settings_.lease == Duration::zero()) return;  // There is no other.
  const auto length = offenders_.blame(now, machine, joined, reason);
  if (!length) return;
  note(action::Note::Level::Warn,
       "machine " + machine + " is passed over for " + duration_text(*length) + ": " + reason);
  cooling_.set(machine, now + *length);
  cool(now, machine);
}

/// Marks the machine's nodes as its sentence says now.
void Job::cool(TimePoint now, const std::string& machine) {
  const auto* sentence = offenders_.sentence(now, machine);
  if (sentence != nullptr) cooling_.set(machine, sentence->ends);
  const auto found = by_machine_.find(machine);
  if (found == by_machine_.end()) return;
  for (const auto& incarnation : found->second) {
    auto* member = roster_.find(incarnation);
    if (member == nullptr) continue;
    roster_.change(*member, [&](Member& one) {
      one.cooling = sentence != nullptr;
      one.unreachable = one.unreachable && one.cooling;
    });
    if (auto* running = std::get_if<Running>(&phase_); running != nullptr && sentence == nullptr)
      running->spare_came = now;
  }
  changed(now);
}

}  // namespace muster::rendezvous

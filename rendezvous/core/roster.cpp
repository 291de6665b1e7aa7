#include "rendezvous/core/roster.hpp"

#include "base/assert.hpp"

#include <utility>

namespace muster::rendezvous {
namespace {

/// `7.9`, of gibibytes.
std::string in_gibibytes(std::uint64_t bytes) {
  constexpr std::uint64_t kTenth = (std::uint64_t{1} << 30U) / 10;
  const auto tenths = (bytes + kTenth / 2) / kTenth;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

}  // namespace

std::string called(const Hello& hello) {
  return hello.name.empty() ? "this node" : "node " + hello.name;
}

std::string memory_note(const Member& member) {
  constexpr std::uint64_t kWorthSaying = 95;  // Per cent.
  // Divided first: another machine may say anything.
  if (member.memory_limit == 0 || member.memory_used / kWorthSaying < member.memory_limit / 100)
    return {};
  return "; probably killed for memory as a whole: " + in_gibibytes(member.memory_used) + " of " +
         in_gibibytes(member.memory_limit) + " GiB were in use";
}

Member& Roster::add(TimePoint now, Hello hello) {
  const auto incarnation = hello.incarnation;
  const auto [found, is_new] = members_.try_emplace(incarnation);
  MUSTER_ASSERT(is_new);
  auto& member = found->second;
  member.number = next_number_++;
  member.hello = std::move(hello);
  member.joined = now;
  by_number_.emplace(member.number, &member);
  count(member, 1);
  answered(now, member);
  return member;
}

void Roster::remove(const Incarnation& incarnation) {
  const auto found = members_.find(incarnation);
  MUSTER_ASSERT(found != members_.end());
  count(found->second, kMinusOne);
  deadlines_.clear(found->second.number);
  by_number_.erase(found->second.number);
  members_.erase(found);
}

Member* Roster::find(const Incarnation& incarnation) {
  const auto found = members_.find(incarnation);
  return found == members_.end() ? nullptr : &found->second;
}

void Roster::answered(TimePoint now, Member& member) {
  member.heard = now;
  if (!member.there) change(member, [](Member& one) { one.there = true; });
  if (lease_ > Duration::zero()) deadlines_.set(member.number, now + lease_ / 2);
}

std::vector<Incarnation> Roster::expire(TimePoint now) {
  std::vector<Incarnation> lost;
  for (const auto number : deadlines_.take_over(now)) {
    auto& member = *by_number_.at(number);
    if (member.there) change(member, [](Member& one) { one.there = false; });
    if (now >= member.heard + give_away_after()) {
      lost.push_back(member.hello.incarnation);
    } else {
      deadlines_.set(number, member.heard + give_away_after());
    }
  }
  return lost;
}

void Roster::count(const Member& member, std::size_t by) {
  const bool candidate = is_candidate(member);
  const bool free = candidate && !member.holds;
  const auto add = [by](std::size_t& to, bool whether) {
    if (whether) to += by;
  };
  add(counts_.ready, free && member.there && !member.cooling);
  add(counts_.cooling, free && member.there && member.cooling);
  add(counts_.awaited, free && !member.there && member.served);
  add(counts_.candidates, candidate);
  add(counts_.holders, member.holds.has_value());
  add(counts_.silent_holders, member.holds && !member.there);
  add(counts_.unseen, !member.verdict_seen);
  add(counts_.hosts, member.hello.hosts_server);
  add(counts_.guests, member.link && !member.hello.hosts_server);
}

}  // namespace muster::rendezvous

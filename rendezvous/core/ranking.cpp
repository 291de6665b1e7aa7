#include "rendezvous/core/ranking.hpp"

#include "rendezvous/core/address.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <tuple>

namespace muster::rendezvous {
namespace {

constexpr auto kNone = std::numeric_limits<std::size_t>::max();

/// The place of each contender in the round before, or kNone.
std::vector<std::size_t> past_places(const std::vector<Contender>& contenders,
                                     const std::vector<PastPlace>& past) {
  std::map<Incarnation, std::size_t> stays;
  for (std::size_t index = 0; index < contenders.size(); ++index)
    stays.emplace(contenders[index].incarnation, index);

  std::vector<std::size_t> places(contenders.size(), kNone);
  std::map<std::string, std::deque<std::size_t>> vacated;  // By machine.
  for (std::size_t place = 0; place < past.size(); ++place) {
    if (past[place] == PastPlace{}) continue;  // Nobody knows who had it.
    if (const auto found = stays.find(past[place].incarnation); found != stays.end()) {
      places[found->second] = place;
    } else {
      vacated[past[place].machine].push_back(place);
    }
  }
  for (std::size_t index = 0; index < contenders.size(); ++index) {
    const auto found = vacated.find(contenders[index].machine);
    if (places[index] != kNone || found == vacated.end() || found->second.empty()) continue;
    places[index] = found->second.front();
    found->second.pop_front();
  }
  return places;
}

std::vector<std::size_t> order_of(const std::vector<Contender>& contenders,
                                  const std::vector<PastPlace>& past) {
  const auto places = past_places(contenders, past);
  const auto given = [&](std::size_t index) {
    const auto& rank = contenders[index].given;
    return rank ? std::size_t{rank->value} : kNone;
  };

  std::vector<std::size_t> order(contenders.size(), kNone);
  std::vector<std::size_t> unplaced;
  const auto seat = [&](std::size_t index, std::size_t place) {
    if (place >= order.size() || order[place] != kNone) return false;
    order[place] = index;
    return true;
  };
  for (std::size_t index = 0; index < contenders.size(); ++index) {
    if (given(index) != kNone && !seat(index, given(index))) unplaced.push_back(index);
  }
  for (std::size_t index = 0; index < contenders.size(); ++index) {
    if (given(index) == kNone && !seat(index, places[index])) unplaced.push_back(index);
  }

  std::vector<AddressKey> addresses(contenders.size());
  for (const auto index : unplaced) addresses[index] = address_key(contenders[index].address);
  std::sort(unplaced.begin(), unplaced.end(), [&](std::size_t a, std::size_t b) {
    const auto key = [&](std::size_t index) {
      const auto& contender = contenders[index];
      return std::make_tuple(given(index), places[index], std::cref(contender.topology),
                             std::cref(addresses[index]), std::cref(contender.machine),
                             std::cref(contender.incarnation));
    };
    return key(a) < key(b);
  });
  auto free = order.begin();
  for (const auto index : unplaced) {
    free = std::find(free, order.end(), kNone);
    *free = index;
  }
  return order;
}

}  // namespace

Ranking rank_nodes(const std::vector<Contender>& contenders, const std::vector<PastPlace>& past) {
  Ranking ranking;
  ranking.order = order_of(contenders, past);
  std::map<std::string, std::uint32_t> on_machine;
  std::map<std::string, std::uint32_t> in_role;
  for (const auto index : ranking.order) {
    const auto& contender = contenders[index];
    auto& machine = on_machine[contender.machine];
    auto& role = in_role[contender.role];
    Ranks ranks;
    ranks.node_rank = {static_cast<std::uint32_t>(ranking.ranks.size())};
    ranks.rank_offset = {ranking.world_size};
    ranks.local_rank_offset = {machine};
    ranks.role_rank_offset = role;
    ranking.ranks.push_back(ranks);
    machine += contender.slots;
    role += contender.slots;
    ranking.world_size += contender.slots;
  }
  for (std::size_t place = 0; place < ranking.order.size(); ++place) {
    const auto& contender = contenders[ranking.order[place]];
    ranking.ranks[place].local_world_size = on_machine[contender.machine];
    ranking.ranks[place].role_world_size = in_role[contender.role];
  }
  return ranking;
}

}  // namespace muster::rendezvous

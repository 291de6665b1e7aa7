// Who waits for what in a KvStore, and when a wait is over.
#include "base/assert.hpp"
#include "rendezvous/core/kv_cost.hpp"
#include "rendezvous/core/kv_store.hpp"
#include "rendezvous/core/planted_fault.hpp"

#include <algorithm>

namespace muster::rendezvous {

void KvStore::forget(KvClient client) {
  const auto found = waits_.find(client.value);
  if (found == waits_.end()) return;
  for (auto& wait : found->second) {
    leave_places(wait);
    bytes_ -= kv_cost::kWait;
  }
  waits_.erase(found);
}

std::vector<KvStore::Pending> KvStore::pending() const {
  std::vector<Pending> result;
  for (const auto& [client, waits] : waits_) {
    Pending one{.client = KvClient{client}, .keys = {}};
    for (const auto& wait : waits) {
      for (const auto& place : wait.places) one.keys.push_back(place.entry->first);
    }
    std::sort(one.keys.begin(), one.keys.end());
    result.push_back(std::move(one));
  }
  std::sort(result.begin(), result.end(),
            [](const auto& a, const auto& b) { return a.client < b.client; });
  return result;
}

KvStore::Wait& KvStore::begin_wait(KvClient client, bool replaceable) {
  auto& waits = waits_[client.value];
  // The replaceable one comes first, where the next Wait looks for it.
  const auto self =
      waits.insert(replaceable ? waits.begin() : waits.end(),
                   Wait{.client = client, .replaceable = replaceable, .self = {}, .places = {}});
  self->self = self;
  bytes_ += kv_cost::kWait;
  return *self;
}

void KvStore::register_for(Wait& wait, Entry& entry) {
  auto& waiters = entry.second.waiters;
  // A key that is named twice counts once: else a push, which satisfies one, would not be enough.
  if (!waiters.empty() && waiters.back().wait == &wait) return;
  const auto registration = waiters.insert(waiters.end(), Registration{&wait, wait.places.size()});
  wait.places.push_back({&entry, registration});
  bytes_ += kv_cost::kRegistration;
}

void KvStore::wake_all(Entry& entry) {
  while (!entry.second.waiters.empty()) {
    satisfy_first(entry);
    if constexpr (MUSTER_PLANTED_FAULT == 1) break;
  }
}

/// Takes the first registration off the key's list, and wakes its client if that was the last thing
/// it lacked.
void KvStore::satisfy_first(Entry& entry) {
  const auto [wait, place] = entry.second.waiters.front();
  entry.second.waiters.pop_front();
  bytes_ -= kv_cost::kRegistration;
  auto& places = wait->places;
  if (place + 1 != places.size()) {
    places[place] = places.back();
    places[place].registration->place = place;
  }
  places.pop_back();
  if (!places.empty()) return;
  woken_.push_back(wait->client);
  end(*wait);
}

void KvStore::leave_places(Wait& wait) {
  for (const auto& place : wait.places) {
    place.entry->second.waiters.erase(place.registration);
    bytes_ -= kv_cost::kRegistration;
    drop_if_unused(*place.entry);
  }
  wait.places.clear();
}

void KvStore::end(Wait& wait) {
  MUSTER_ASSERT(wait.places.empty());
  const auto of_client = waits_.find(wait.client.value);
  of_client->second.erase(wait.self);
  if (of_client->second.empty()) waits_.erase(of_client);
  bytes_ -= kv_cost::kWait;
}

}  // namespace muster::rendezvous

// The table of a KvStore: what is kept under a key, and what that costs.
#include "rendezvous/core/kv_cost.hpp"
#include "rendezvous/core/kv_store.hpp"

namespace muster::rendezvous {
namespace {

/// A value's room may exceed twice its size by this much.
constexpr std::size_t kSpareValueBytes = 64;

}  // namespace

KvStore::Entry* KvStore::find(std::string_view key) {
  const auto found = table_.find(key);
  return found == table_.end() ? nullptr : &*found;
}

KvStore::Entry* KvStore::find_value(std::string_view key) {
  Entry* const entry = find(key);
  return entry != nullptr && entry->second.has_value ? entry : nullptr;
}

bool KvStore::is_present(std::string_view key) {
  const Entry* const entry = find(key);
  return entry != nullptr && (entry->second.has_value || entry->second.queue != nullptr);
}

bool KvStore::has_room(std::size_t more) const {
  return bytes_ <= limits_.stored_bytes && more <= limits_.stored_bytes - bytes_;
}

KvStore::Entry& KvStore::entry_of(std::string_view key, Entry* found) {
  if (found != nullptr) return *found;
  bytes_ += kv_cost::kEntry + key.size();
  return *table_.try_emplace(std::string(key)).first;
}

/// Gives the key a value. False, and nothing has changed, if there is no room.
bool KvStore::store(std::string_view key, Entry* found, std::string_view value, bool wakes) {
  const std::size_t before = found == nullptr ? 0 : found->second.value.size();
  const std::size_t more = (found == nullptr ? kv_cost::kEntry + key.size() : 0) +
                           (value.size() > before ? value.size() - before : 0);
  if (!has_room(more)) return false;
  Entry& entry = entry_of(key, found);
  Slot& slot = entry.second;
  bytes_ += value.size();
  bytes_ -= before;
  if (slot.value.capacity() > 2 * value.size() + kSpareValueBytes) std::string().swap(slot.value);
  slot.value.assign(value);
  if (!slot.has_value) ++keys_;
  slot.has_value = true;
  if (wakes) wake_all(entry);
  return true;
}

void KvStore::drop_if_unused(Entry& entry) {
  const Slot& slot = entry.second;
  if (slot.has_value || slot.queue != nullptr || !slot.waiters.empty()) return;
  bytes_ -= kv_cost::kEntry + entry.first.size();
  table_.erase(table_.find(entry.first));
}

}  // namespace muster::rendezvous

#include "rendezvous/core/kv_store.hpp"

#include "rendezvous/core/kv_cost.hpp"
#include "rendezvous/core/planted_fault.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <system_error>

namespace muster::rendezvous {
namespace {

constexpr std::size_t kMaxNumberText = 20;  // "-9223372036854775808"
constexpr std::size_t kKeptViews = 4096;    // More room than this is given back after the command.
constexpr std::size_t kKeptPoppedBytes = 64 * 1024;  // Likewise.
constexpr std::size_t kShownKeyBytes = 80;

/// A key or value for a message: printable, and not too long.
std::string shown(std::string_view bytes) {
  std::string text = "'";
  for (const char c : bytes.substr(0, kShownKeyBytes)) {
    const bool printable = c >= ' ' && c <= '~';
    text += printable ? c : '?';
  }
  if (bytes.size() > kShownKeyBytes) text += "...";
  return text + "'";
}

/// The number that `text` begins with, read as the C function strtoll does: blanks before it are
/// skipped, a sign is accepted, what follows is ignored. nullopt if there is no number, or if it
/// does not fit.
std::optional<std::int64_t> leading_number(std::string_view text) {
  const auto start = text.find_first_not_of(" \t\n\v\f\r");
  if (start == std::string_view::npos) return std::nullopt;
  text.remove_prefix(start);
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  std::int64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc{})
    return std::nullopt;
  return number;
}

/// A number as decimal text, without an allocation.
class NumberText {
 public:
  explicit NumberText(std::int64_t number) {
    const auto as_unsigned = static_cast<std::uint64_t>(number);
    const auto result = MUSTER_PLANTED_FAULT == 2
                            ? std::to_chars(text_, std::end(text_), as_unsigned)
                            : std::to_chars(text_, std::end(text_), number);
    size_ = static_cast<std::size_t>(result.ptr - text_);
  }
  [[nodiscard]] std::string_view view() const noexcept { return {text_, size_}; }

 private:
  char text_[kMaxNumberText];
  std::size_t size_;
};

}  // namespace

KvStore::Outcome KvStore::execute(KvClient client, const kv::Command& command) {
  woken_.clear();
  views_.clear();
  if (views_.capacity() > kKeptViews) views_.shrink_to_fit();
  if (popped_.capacity() > kKeptPoppedBytes) std::string().swap(popped_);
  auto reply = std::visit([&](const auto& each) { return run(client, each); }, command);
  return {reply, woken_};
}

kv::Reply KvStore::run(KvClient, const kv::Set& set) {
  if (!store(set.key, find(set.key), set.value, true)) return refuse_full("SET", set.key);
  return kv::Nothing{};
}

kv::Reply KvStore::run(KvClient, const kv::CompareSet& swap) {
  Entry* const entry = find(swap.key);
  const bool exists = entry != nullptr && entry->second.has_value;
  if (exists && entry->second.value != swap.expected) return kv::Value{entry->second.value};
  // Clients rely on this: a key that is not there answers what was expected of it, as if it had
  // been found.
  if (!exists && !swap.expected.empty()) return kv::Value{swap.expected};
  if (!store(swap.key, entry, swap.desired, !exists)) return refuse_full("COMPARE_SET", swap.key);
  return kv::Value{swap.desired};
}

kv::Reply KvStore::run(KvClient, const kv::Get& get) {
  const Entry* const entry = find_value(get.key);
  return kv::Value{entry == nullptr ? std::string_view{} : entry->second.value};
}

kv::Reply KvStore::run(KvClient, const kv::Add& add) {
  Entry* const entry = find(add.key);
  const auto total = sum(entry, add.delta);
  if (!total) return refuse_text("ADD", *entry);
  if (!store(add.key, entry, NumberText(*total).view(), true)) return refuse_full("ADD", add.key);
  return kv::Number{*total};
}

kv::Reply KvStore::run(KvClient, const kv::CountKeys&) {
  return kv::Number{static_cast<std::int64_t>(keys_)};
}

kv::Reply KvStore::run(KvClient, const kv::Delete& remove) {
  Entry* const entry = find_value(remove.key);
  if (entry == nullptr) return kv::Number{0};
  bytes_ -= entry->second.value.size();
  --keys_;
  entry->second.has_value = false;
  std::string().swap(entry->second.value);
  drop_if_unused(*entry);
  return kv::Number{1};
}

kv::Reply KvStore::run(KvClient, const kv::Append& append) {
  Entry* const entry = find(append.key);
  if (entry == nullptr || !entry->second.has_value) {
    if (!store(append.key, entry, append.tail, true)) return refuse_full("APPEND", append.key);
    return kv::Nothing{};
  }
  if (!has_room(append.tail.size())) return refuse_full("APPEND", append.key);
  entry->second.value.append(append.tail);
  bytes_ += append.tail.size();
  wake_all(*entry);
  return kv::Nothing{};
}

kv::Reply KvStore::run(KvClient, const kv::Check& check) {
  const bool all =
      std::all_of(check.keys.begin(), check.keys.end(), [&](auto key) { return is_present(key); });
  return kv::Readiness{all};
}

kv::Reply KvStore::run(KvClient, const kv::MultiGet& get) {
  views_.reserve(get.keys.size());
  for (const auto key : get.keys) {
    const Entry* const entry = find_value(key);
    views_.push_back(entry == nullptr ? std::string_view{} : entry->second.value);
  }
  return kv::Values{views_};
}

kv::Reply KvStore::run(KvClient, const kv::MultiSet& set) {
  for (const auto& [key, value] : set.pairs) {
    if (!store(key, find(key), value, true)) return refuse_full("MULTI_SET", key);
  }
  return kv::Nothing{};
}

kv::Reply KvStore::run(KvClient, const kv::ListKeys&) {
  views_.reserve(keys_);
  for (const auto& [key, slot] : table_) {
    if (slot.has_value) views_.push_back(key);
  }
  std::sort(views_.begin(), views_.end());
  return kv::Keys{views_};
}

kv::Reply KvStore::run(KvClient client, const kv::Wait& wait) {
  std::size_t missing = 0;
  std::size_t cost = kv_cost::kWait;
  for (const auto key : wait.keys) {
    if (is_present(key)) continue;
    ++missing;
    cost += kv_cost::kRegistration + kv_cost::kEntry + key.size();
  }
  if (missing != 0 && !has_room(cost)) return refuse_full("WAIT", wait.keys.front());

  const auto earlier = waits_.find(client.value);
  if (earlier != waits_.end() && earlier->second.front().replaceable) {
    Wait& replaced = earlier->second.front();
    leave_places(replaced);
    end(replaced);
  }
  if (missing == 0) return kv::StopWaiting{};

  Wait& begun = begin_wait(client, true);
  begun.places.reserve(missing);
  for (const auto key : wait.keys) {
    if (!is_present(key)) register_for(begun, entry_of(key, find(key)));
  }
  return kv::Withheld{};
}

kv::Reply KvStore::run(KvClient client, const kv::CancelWait&) {
  if constexpr (MUSTER_PLANTED_FAULT != 3) forget(client);
  return kv::WaitCancelled{};
}

kv::Reply KvStore::run(KvClient client, const kv::Barrier& barrier) {
  Entry* const found = find(barrier.key);
  const auto arrived = sum(found, 1);
  if (!arrived) return refuse_text("BARRIER", *found);
  const std::size_t most = kv_cost::kEntry + barrier.key.size() + kMaxNumberText + kv_cost::kWait +
                           kv_cost::kRegistration;
  if (!has_room(most)) return refuse_full("BARRIER", barrier.key);

  const bool wakes = false;
  store(barrier.key, found, NumberText(*arrived).view(), wakes);
  Entry& entry = found != nullptr ? *found : *find(barrier.key);
  if (barrier.world_size <= 0 || *arrived >= barrier.world_size) {
    wake_all(entry);
    return kv::StopWaiting{};
  }
  register_for(begin_wait(client, false), entry);
  return kv::Withheld{};
}

kv::Reply KvStore::run(KvClient, const kv::QueuePush& push) {
  Entry* const found = find(push.key);
  const bool is_first = found == nullptr || found->second.queue == nullptr;
  const std::size_t more = (found == nullptr ? kv_cost::kEntry + push.key.size() : 0) +
                           (is_first ? kv_cost::kQueue : 0) + kv_cost::kItem + push.item.size();
  if (!has_room(more)) return refuse_full("QUEUE_PUSH", push.key);
  Entry& entry = entry_of(push.key, found);
  auto& queue = entry.second.queue;
  if (is_first) {
    queue = std::make_unique<std::deque<std::string>>();
    bytes_ += kv_cost::kQueue;
  }
  queue->emplace_back(push.item);
  bytes_ += kv_cost::kItem + push.item.size();
  if (!entry.second.waiters.empty()) satisfy_first(entry);
  return kv::Nothing{};
}

kv::Reply KvStore::run(KvClient, const kv::QueuePop& pop) {
  Entry* const entry = find(pop.key);
  if (entry == nullptr || entry->second.queue == nullptr) return kv::Popped{};
  auto& queue = entry->second.queue;
  const auto before = static_cast<std::int64_t>(queue->size());
  popped_ = std::move(queue->front());
  queue->pop_front();
  bytes_ -= kv_cost::kItem + popped_.size();
  if (queue->empty()) {
    queue.reset();
    bytes_ -= kv_cost::kQueue;
    drop_if_unused(*entry);
  }
  return kv::Popped{before, popped_};
}

kv::Reply KvStore::run(KvClient, const kv::QueueLength& length) {
  const Entry* const entry = find(length.key);
  if (entry == nullptr || entry->second.queue == nullptr) return kv::Number{0};
  return kv::Number{static_cast<std::int64_t>(entry->second.queue->size())};
}

kv::Reply KvStore::run(KvClient, const kv::Ping& ping) { return kv::Echo{ping.nonce}; }

kv::Reply KvStore::run(KvClient, const kv::Watch&) { return kv::Watching{}; }

/// The number at the entry, 0 where there is none, plus delta, wrapping around; nullopt if its
/// value is no number.
std::optional<std::int64_t> KvStore::sum(const Entry* entry, std::int64_t delta) const {
  std::int64_t number = 0;
  if (entry != nullptr && entry->second.has_value) {
    const auto parsed = leading_number(entry->second.value);
    if (!parsed) return std::nullopt;
    number = *parsed;
  }
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(number) +
                                   static_cast<std::uint64_t>(delta));
}

kv::Reply KvStore::refuse(std::string reason) {
  refusal_ = std::move(reason);
  return kv::Refused{refusal_};
}

kv::Reply KvStore::refuse_full(std::string_view act, std::string_view key) {
  return refuse(std::string(act) + " of " + shown(key) + ": the store is full, its limit is " +
                std::to_string(limits_.stored_bytes) + " bytes");
}

kv::Reply KvStore::refuse_text(std::string_view act, const Entry& entry) {
  return refuse(std::string(act) + " on " + shown(entry.first) + ": its value " +
                shown(entry.second.value) + " is not a decimal number of 64 bits");
}

}  // namespace muster::rendezvous

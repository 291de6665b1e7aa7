#pragma once

#include "rendezvous/core/kv_command.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace muster::rendezvous {

/// The contents of a c10d store and who waits for them.
///
/// Three things live under a key: a value, a queue (a name space of its own, but Wait and Check
/// count a non-empty queue as present) and the list of those who wait, in order of arrival. A Wait
/// ends once every key that it lacked has been created at some time since, even if it is gone
/// again. A client has one Wait at a time (a second one replaces it) and any number of Barrier
/// arrivals; each is answered at most once, and never after it was cancelled. Creation by Set, Add,
/// Append, CompareSet or MultiSet wakes all who wait for the key, a QueuePush the first only; the
/// arrival that completes a Barrier wakes all. An earlier arrival creates the key too, but wakes
/// nobody.
///
/// Pure: the same calls give the same answers. Copies what it keeps.
class KvStore {
 public:
  struct Limits {
    /// Keys, values, queue items and waits, with what it costs to keep them (allocators round up on
    /// top). A command that would exceed it is refused and changes nothing, except that a MultiSet
    /// keeps the pairs before.
    std::size_t stored_bytes;
  };

  explicit KvStore(Limits limits) : limits_(limits) {}
  KvStore(const KvStore&) = delete;
  KvStore& operator=(const KvStore&) = delete;

  /// What a command brought about. Valid until the next call.
  struct Outcome {
    kv::Reply reply;
    /// Who gets StopWaiting, first come first; once for each wait that ended. Due before `reply`.
    std::span<const KvClient> woken;
  };
  [[nodiscard]] Outcome execute(KvClient client, const kv::Command& command);

  /// Drops, unanswered, everything that the client waits for. It left, or it gave up without saying
  /// so.
  void forget(KvClient client);

  struct Pending {
    KvClient client;
    std::vector<std::string> keys;  ///< That it still lacks.
  };
  /// All unanswered waits, ordered by client.
  [[nodiscard]] std::vector<Pending> pending() const;

  [[nodiscard]] std::size_t keys() const noexcept { return keys_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Wait;
  /// A wait's entry in the list of a key; `place` is its index in `Wait::places`.
  struct Registration {
    Wait* wait;
    std::size_t place;
  };
  struct Slot {
    bool has_value = false;
    std::string value;
    std::unique_ptr<std::deque<std::string>> queue;  // Never empty.
    std::list<Registration> waiters;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const noexcept {
      return std::hash<std::string_view>{}(key);
    }
  };
  using Table = std::unordered_map<std::string, Slot, Hash, std::equal_to<>>;
  using Entry = Table::value_type;
  struct Place {
    Entry* entry;
    std::list<Registration>::iterator registration;
  };
  /// An unanswered Wait or Barrier arrival: over when no place is left.
  struct Wait {
    KvClient client;
    bool replaceable;  // A Wait, which the client's next Wait replaces.
    std::list<Wait>::iterator self;
    std::vector<Place> places;
  };

  kv::Reply run(KvClient, const kv::Set& set);
  kv::Reply run(KvClient, const kv::CompareSet& swap);
  kv::Reply run(KvClient, const kv::Get& get);
  kv::Reply run(KvClient, const kv::Add& add);
  kv::Reply run(KvClient, const kv::Check& check);
  kv::Reply run(KvClient client, const kv::Wait& wait);
  kv::Reply run(KvClient, const kv::CountKeys&);
  kv::Reply run(KvClient, const kv::Delete& remove);
  kv::Reply run(KvClient, const kv::Append& append);
  kv::Reply run(KvClient, const kv::MultiGet& get);
  kv::Reply run(KvClient, const kv::MultiSet& set);
  kv::Reply run(KvClient client, const kv::CancelWait&);
  kv::Reply run(KvClient, const kv::Ping& ping);
  kv::Reply run(KvClient, const kv::QueuePush& push);
  kv::Reply run(KvClient, const kv::QueuePop& pop);
  kv::Reply run(KvClient, const kv::QueueLength& length);
  kv::Reply run(KvClient, const kv::ListKeys&);
  kv::Reply run(KvClient client, const kv::Barrier& barrier);
  kv::Reply run(KvClient, const kv::Watch&);

  [[nodiscard]] Entry* find(std::string_view key);
  [[nodiscard]] Entry* find_value(std::string_view key);
  [[nodiscard]] bool is_present(std::string_view key);
  [[nodiscard]] bool has_room(std::size_t more) const;
  Entry& entry_of(std::string_view key, Entry* found);
  bool store(std::string_view key, Entry* found, std::string_view value, bool wakes);
  void drop_if_unused(Entry& entry);

  [[nodiscard]] Wait& begin_wait(KvClient client, bool replaceable);
  void register_for(Wait& wait, Entry& entry);
  void wake_all(Entry& entry);
  void satisfy_first(Entry& entry);
  void leave_places(Wait& wait);
  void end(Wait& wait);

  [[nodiscard]] std::optional<std::int64_t> sum(const Entry* entry, std::int64_t delta) const;
  kv::Reply refuse(std::string reason);
  kv::Reply refuse_full(std::string_view act, std::string_view key);
  kv::Reply refuse_text(std::string_view act, const Entry& entry);

  Limits limits_;
  Table table_;
  std::unordered_map<std::uint64_t, std::list<Wait>> waits_;
  std::size_t keys_ = 0;
  std::size_t bytes_ = 0;

  // What the last Outcome points to.
  std::vector<KvClient> woken_;
  std::vector<std::string_view> views_;
  std::string popped_;
  std::string refusal_;
};

}  // namespace muster::rendezvous

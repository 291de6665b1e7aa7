#pragma once

#include "base/ids.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

namespace muster::rendezvous {

/// Names one connection to the store, for as long as it lives. The store only compares it.
using KvClient = Strong<struct KvClientTag, std::uint64_t>;

/// What a client can ask. Every view points into the caller's memory and is read during
/// `KvStore::execute` only.
namespace kv {

struct Set {
  std::string_view key, value;
};
struct CompareSet {
  std::string_view key, expected, desired;
};
struct Get {
  std::string_view key;
};
struct Add {
  std::string_view key;
  std::int64_t delta = 0;
};
struct Check {
  std::span<const std::string_view> keys;
};
struct Wait {
  std::span<const std::string_view> keys;
};
struct CountKeys {};
struct Delete {
  std::string_view key;
};
struct Append {
  std::string_view key, tail;
};
struct MultiGet {
  std::span<const std::string_view> keys;
};
struct MultiSet {
  std::span<const std::pair<std::string_view, std::string_view>> pairs;
};
struct CancelWait {};
struct Ping {
  std::uint32_t nonce = 0;
};
struct QueuePush {
  std::string_view key, item;
};
struct QueuePop {
  std::string_view key;
};
struct QueueLength {
  std::string_view key;
};
struct ListKeys {};
struct Barrier {
  std::string_view key;
  std::int64_t world_size = 0;
};
struct Watch {  ///< Of the oldest clients; acknowledged, but nothing is ever pushed.
  std::string_view key;
};

using Command = std::variant<Set, CompareSet, Get, Add, Check, Wait, CountKeys, Delete, Append,
                             MultiGet, MultiSet, CancelWait, Ping, QueuePush, QueuePop, QueueLength,
                             ListKeys, Barrier, Watch>;

struct Nothing {};   ///< The command has no reply.
struct Withheld {};  ///< The reply, StopWaiting, comes when the client is woken.
struct StopWaiting {};
struct WaitCancelled {};
struct Watching {};
struct Readiness {
  bool all_exist = false;
};
struct Number {
  std::int64_t value = 0;
};
struct Value {
  std::string_view bytes;
};
struct Values {  ///< Of MultiGet: as many as were asked for, in that order.
  std::span<const std::string_view> each;
};
struct Keys {  ///< Of ListKeys, in ascending order.
  std::span<const std::string_view> each;
};
struct Popped {  ///< How many items there were before the pop; the item, if there was one.
  std::int64_t length_before = 0;
  std::string_view item;
};
struct Echo {
  std::uint32_t nonce = 0;
};
struct Refused {  ///< There is no error reply: the connection must be closed. Nothing was changed.
  std::string_view reason;
};

using Reply = std::variant<Nothing, Withheld, StopWaiting, WaitCancelled, Watching, Readiness,
                           Number, Value, Values, Keys, Popped, Echo, Refused>;

}  // namespace kv
}  // namespace muster::rendezvous

#pragma once

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "rendezvous/store_client/options.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::store_client {

class Session;
struct Call;

/// A call's time-out; nullopt: ConnectOptions::call_timeout. Zero asks once and waits for nothing
/// but the answer's arrival in the kernel: of use for wait() only.
using Timeout = std::optional<Duration>;

/// What PyTorch's own servers take; ours take no less. A longer one is refused here, with
/// InvalidArgument: they would close the connection.
constexpr std::size_t kMaxKeyBytes = 8192;  ///< With all prefixes.
constexpr std::size_t kMaxValueBytes = 8 << 20;
constexpr std::size_t kMaxKeys = 131072;  ///< In one request.

/// The operations of a c10d store (PyTorch's TCPStore), on keys below a prefix.
///
/// A Store borrows the connection of a StoreClient, which must outlive it. Every call blocks, until
/// its time-out at most, and only one may be under way on a client at a time: a thread needs a
/// client of its own. Values are bytes.
///
/// Errors name the act, the key and the server: `wait for 'x' at 10.0.0.1:29500: timed out
/// after 3.0s`. Timeout: no answer in time. Unavailable: the connection was lost; a request that
/// may have been executed and must not be twice (add, append, delete_key, compare_set, queue_push,
/// queue_pop, barrier) says so, all others are repeated on a new connection. InvalidArgument: the
/// server's dialect lacks the operation, or a limit is broken; nothing was sent. Internal: what
/// answers is no store.
class Store {
 public:
  /// Does not wait for the server's answer, there being none: flush() does, for this and all
  /// earlier ones.
  [[nodiscard]] Result<void> set(std::string_view key, std::string_view value,
                                 Timeout timeout = {});
  /// In order, not at once; not answered, as set(). Dialect B and later.
  [[nodiscard]] Result<void> multi_set(std::span<const std::pair<std::string, std::string>> entries,
                                       Timeout timeout = {});
  /// To the end of the value, which may be missing; not answered, as set(). Dialect B and later.
  [[nodiscard]] Result<void> append(std::string_view key, std::string_view bytes,
                                    Timeout timeout = {});
  /// Makes sure that the server has executed all that set, multi_set and append sent, of all views
  /// of the client. Fails if any of it went down with a connection since the last flush: set it
  /// again.
  [[nodiscard]] Result<void> flush(Timeout timeout = {});

  /// Waits for the key.
  [[nodiscard]] Result<std::string> get(std::string_view key, Timeout timeout = {});
  /// Waits for all keys; values in their order. Dialect B and later.
  [[nodiscard]] Result<std::vector<std::string>> multi_get(std::span<const std::string> keys,
                                                           Timeout timeout = {});
  /// Waits until the key is there, or was for a moment.
  [[nodiscard]] Result<void> wait(std::string_view key, Timeout timeout = {});
  [[nodiscard]] Result<void> wait(std::span<const std::string> keys, Timeout timeout = {});
  /// Whether they all are there.
  [[nodiscard]] Result<bool> check(std::string_view key, Timeout timeout = {});
  [[nodiscard]] Result<bool> check(std::span<const std::string> keys, Timeout timeout = {});

  /// Adds to the decimal text at the key, a missing one counting as 0; returns the sum. A text that
  /// is no number makes the server close the connection: Unavailable.
  [[nodiscard]] Result<std::int64_t> add(std::string_view key, std::int64_t delta,
                                         Timeout timeout = {});
  /// Sets the key if its value is `expected`, a missing one counting as empty. Returns `desired` if
  /// it did, else what the key holds, or `expected` if it is missing.
  [[nodiscard]] Result<std::string> compare_set(std::string_view key, std::string_view expected,
                                                std::string_view desired, Timeout timeout = {});
  /// Whether it was there.
  [[nodiscard]] Result<bool> delete_key(std::string_view key, Timeout timeout = {});
  /// All keys of the server, whatever their prefix.
  [[nodiscard]] Result<std::int64_t> num_keys(Timeout timeout = {});
  /// The keys below the prefix, without it, sorted. Dialect F and later.
  [[nodiscard]] Result<std::vector<std::string>> list_keys(Timeout timeout = {});

  /// Queues have names of their own, beside the keys. Dialect E and later; PyTorch's servers with
  /// libuv only. A push is confirmed by the server.
  [[nodiscard]] Result<void> queue_push(std::string_view queue, std::string_view item,
                                        Timeout timeout = {});
  /// Waits for an item. On an error after the request was sent an item may be lost.
  [[nodiscard]] Result<std::string> queue_pop(std::string_view queue, Timeout timeout = {});
  /// nullopt if the queue is empty.
  [[nodiscard]] Result<std::optional<std::string>> queue_try_pop(std::string_view queue,
                                                                 Timeout timeout = {});
  [[nodiscard]] Result<std::int64_t> queue_len(std::string_view queue, Timeout timeout = {});

  /// Waits until `world_size` callers have come to the key; once only: later ones pass at once. A
  /// caller that gave up stays counted. Without a view this is the server's BARRIER (dialect G);
  /// below a prefix it is made of add, set and wait, as PyTorch's PrefixStore does it, and works
  /// with every server.
  [[nodiscard]] Result<void> barrier(std::string_view key, std::int64_t world_size,
                                     Timeout timeout = {});
  /// A round trip. Dialect D and later.
  [[nodiscard]] Result<void> ping(Timeout timeout = {});

  /// A view of the keys below `prefix + "/"`: PyTorch's PrefixStore(prefix, store).
  [[nodiscard]] Store under(std::string_view prefix) const;

  /// What the server speaks; from D on the least that is known, operations that it answered
  /// included.
  [[nodiscard]] ServerDialect dialect() const;
  [[nodiscard]] const Endpoint& endpoint() const;

 protected:
  Store(Session& session, std::string prefix, std::size_t root);

 private:
  [[nodiscard]] bool is_view() const noexcept { return prefix_.size() > root_; }
  [[nodiscard]] Call call(std::string_view verb, std::string_view key, Timeout timeout) const;
  [[nodiscard]] Call call(std::string_view verb, std::span<const std::string> keys,
                          Timeout timeout) const;
  [[nodiscard]] Call call(std::string_view verb, Timeout timeout) const;
  [[nodiscard]] Result<void> check_limits(const Call& call, std::string_view key,
                                          std::string_view value = {}) const;
  [[nodiscard]] Result<void> check_limits(const Call& call,
                                          std::span<const std::string> keys) const;
  [[nodiscard]] Result<void> check_count(const Call& call, std::size_t count) const;
  [[nodiscard]] Result<void> wait(Call& call, std::span<const std::string> keys);
  [[nodiscard]] Result<std::int64_t> add(Call& call, std::string_view key, std::int64_t delta);
  [[nodiscard]] Result<void> set(Call& call, std::string_view key, std::string_view value);
  [[nodiscard]] Result<std::optional<std::string>> pop(Call& call, std::string_view queue);

  Session* session_;
  std::string prefix_;
  std::size_t
      root_;  ///< How much of the prefix every key of the client has: not shown in messages.
};

}  // namespace muster::store_client

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::store_client {

/// The protocol of PyTorch's TCPStore carries no version, and its opcodes were renumbered twice:
/// which numbers a server understands is its dialect.
enum class Dialect {
  A,  ///< PyTorch 1.13 and 2.0.
  B,  ///< 2.1: adds APPEND, MULTI_GET, MULTI_SET, CANCEL_WAIT.
  C,  ///< 2.2 to 2.4: a client must introduce itself.
  D,  ///< 2.5 to 2.7: adds PING.
  E,  ///< 2.8 and 2.9: adds queues.
  F,  ///< 2.10 and 2.11: adds LIST_KEYS.
  G,  ///< 2.12 and later: adds BARRIER.
};

enum class Operation {
  Set,
  CompareSet,
  Get,
  Add,
  Check,
  Wait,
  NumKeys,
  DeleteKey,
  Append,
  MultiGet,
  MultiSet,
  CancelWait,
  Ping,
  QueuePush,
  QueuePop,
  QueueLen,
  ListKeys,
  Barrier,
};

/// What is known of a server. From D on dialects differ in what was added at the end only, and
/// nothing but trying tells which of these a server has: detection yields D `or_later`.
struct ServerDialect {
  Dialect dialect = Dialect::G;
  bool or_later = false;
  friend bool operator==(const ServerDialect&, const ServerDialect&) = default;
};

/// The number of an operation; nullopt where the dialect lacks it. `or_later` servers are taken at
/// their best.
[[nodiscard]] std::optional<std::uint8_t> opcode(ServerDialect server, Operation operation);

/// The dialect that brought the operation: from it on a server is certain to have it, before it may
/// be worth a try.
[[nodiscard]] Dialect first_dialect(Operation operation);

/// `A (PyTorch 1.13 and 2.0)`.
[[nodiscard]] std::string_view to_string(Dialect dialect);

/// `QUEUE_PUSH`.
[[nodiscard]] std::string_view to_string(Operation operation);

}  // namespace muster::store_client

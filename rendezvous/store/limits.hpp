#pragma once

#include "base/ids.hpp"

#include <chrono>
#include <cstddef>

namespace muster::store {

/// The wire formats of c10d clients, by PyTorch version. They differ in their opcodes only; from C
/// on a connection begins with VALIDATE.
enum class Dialect {
  A,  ///< 1.13, 2.0
  B,  ///< 2.1
  C,  ///< 2.2 to 2.4
  D,  ///< 2.5 to 2.7: adds PING
  E,  ///< 2.8, 2.9: adds queues
  F,  ///< 2.10, 2.11: adds LIST_KEYS
  G,  ///< 2.12 and later: adds BARRIER
};

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;
constexpr std::size_t kGiB = 1024 * kMiB;

/// None of them is below that of PyTorch's own (libuv) server. What breaks one of the first seven
/// closes its connection with a warning, before any memory is taken for it.
struct Limits {
  std::size_t key_bytes = 8 * kKiB;
  std::size_t value_bytes =
      8 * kMiB;  ///< In one request; APPEND may let a stored value grow beyond.
  std::size_t keys_per_request = 128 * kKiB;
  std::size_t request_bytes =
      1280 * kMiB;  ///< Room for as many keys as are allowed, all of full length.
  std::size_t reply_bytes =
      1280 * kMiB;  ///< MULTI_GET and LIST_KEYS can ask for more than was stored.

  /// Keys, values, queues and waits. A command that would exceed it is refused: its connection
  /// closes.
  std::size_t stored_bytes = 2 * kGiB;
  /// Of all connections together: what has come of unfinished requests, and replies that were not
  /// taken yet. The connection that would exceed it closes. Replies that the kernel takes at once
  /// count only if they are longer than a few MiB.
  std::size_t buffered_bytes = 2 * kGiB;
  /// Replies waiting on one connection before no more of its requests are read. It goes on when
  /// they are taken; it is never closed for that.
  std::size_t unsent_bytes = kMiB;

  /// Open at one time; those that come beyond are closed at once. A quiet connection is kept for
  /// ever: the oldest clients have a second one on which they never send.
  std::size_t connections = 256 * kKiB;
  std::size_t connections_per_address = 16 * kKiB;

  /// How long a request may take to come in, once its first byte is here; for a long one, each
  /// further `value_bytes` of it. A connection that exceeds it closes.
  Duration partial_request = std::chrono::seconds(60);
  /// How long a client that is refused may take to fetch the replies that it is still due. Then its
  /// connection closes, whatever is left.
  Duration farewell = std::chrono::seconds(5);
};

}  // namespace muster::store

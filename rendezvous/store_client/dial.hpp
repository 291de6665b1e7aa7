#pragma once

#include "base/endpoint.hpp"
#include "rendezvous/store_client/connection.hpp"

#include <optional>
#include <string>

namespace muster::store_client {

/// Why a server could not be had.
struct Refusal {
  enum class Kind {
    NotThere,  ///< Nobody listens, or the name is unknown: may pass.
    Closed,  ///< It accepted and closed again: may pass, a proxy before its server is up does that.
    Silent,  ///< It accepted and answered nothing until the deadline.
    NoStore,  ///< It answered what no store does: waiting will not mend that.
  };
  Kind kind;
  std::string cause;
};

/// A connection to a store, or why there is none, after one round over all addresses of the
/// endpoint. What listens there has proved that it is a store, and of which dialect:
///
///   1. VALIDATE and PING in one piece. The echo comes from D or later. A and B read the same bytes
///   as a SET of a key
///      of 2^63 bytes and drop the connection, C does not know PING and drops it too.
///   2. GETNUMKEYS as A and B number it. A number comes from A or B; C closes or says nothing.
///   3. From A or B, CANCEL_WAIT as B numbers it, on a further connection: B confirms, A closes.
///      Otherwise VALIDATE and four CANCEL_WAIT in one piece: C confirms four times. (To A and B
///      that is again a key too long to allocate; VALIDATE alone would make them read for ever, for
///      all of their clients.)
///
/// With `fixed` given only that dialect's step is taken.
[[nodiscard]] tl::expected<Connection, Refusal> dial(const Endpoint& endpoint,
                                                     std::optional<Dialect> fixed,
                                                     TimePoint deadline);

/// How long one address may take to accept, so that a dead one does not use up the time of the
/// others.
constexpr Duration kConnectPatience = std::chrono::seconds(5);

/// How long step 2 waits for a server that says nothing, as C's does. One that is merely slow is
/// asked again from step 1: C must confirm in step 3.
constexpr Duration kProbePatience = std::chrono::seconds(1);

}  // namespace muster::store_client

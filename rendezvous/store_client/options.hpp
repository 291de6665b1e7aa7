#pragma once

#include "base/ids.hpp"
#include "rendezvous/store_client/dialect.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace muster::store_client {

struct ConnectOptions {
  /// For connecting, detection of the dialect included.
  Duration timeout = std::chrono::seconds(30);

  /// For each call that is given no time-out of its own. PyTorch's default.
  Duration call_timeout = std::chrono::minutes(5);

  /// How long one call tries to reach a server that it has lost, within its time-out. It is not
  /// waited for at all if zero.
  Duration reconnect_patience = std::chrono::seconds(30);

  /// Try again, until the time-out, while nobody listens, the name is unknown, or connections are
  /// closed at once.
  bool wait_for_server = true;

  /// Speak this dialect, and only that; otherwise it is detected.
  std::optional<Dialect> dialect = {};

  /// Stands in front of every key. PyTorch's clients put "/" there; empty gives access to raw keys.
  std::string key_prefix = "/";
};

}  // namespace muster::store_client

#pragma once

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "rendezvous/store_client/backoff.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace muster::store_client {

/// One call of the user: what its errors say about it, and how long it may take.
struct Call {
  /// What is being done, in words. Its views must outlive the call.
  struct Act {
    std::string_view verb;         ///< `wait for`; empty while connecting.
    std::string_view prefix = {};  ///< Of the view that was used.
    std::string_view key = {};
    std::size_t others = 0;  ///< Further keys.
    bool has_key = true;
  };

  /// A time without a connection, as far as this call has seen.
  struct Outage {
    TimePoint since;
    std::string cause;        ///< How it began: `the server closed the connection`.
    std::string latest = {};  ///< Why the last attempt to connect failed; empty: none was made.
    int tries = 0;
    Backoff backoff = {};
  };

  Call(Act what, Duration allowed);

  Act act;
  Duration timeout;
  TimePoint deadline;
  std::optional<Outage> outage;
};

/// `wait for 'x' and 2 more at 127.0.0.1:4711`, or `connect to 127.0.0.1:4711`.
[[nodiscard]] std::string describe(const Call& call, const Endpoint& endpoint);

/// `set 'x'`, without the server.
[[nodiscard]] std::string describe(const Call::Act& act);

/// An error about the call: `wait for 'x' at 127.0.0.1:4711: cause`.
[[nodiscard]] Error call_error(const Call& call, const Endpoint& endpoint, Errc code,
                               std::string_view cause);

/// `3.0s`, `250ms`.
[[nodiscard]] std::string to_text(Duration duration);

/// Longer time-outs are cut to this: the clock could not add them up.
constexpr Duration kLongestTimeout = std::chrono::hours(24 * 365);

/// Longer keys are cut in messages.
constexpr std::size_t kShownKeyBytes = 80;

}  // namespace muster::store_client

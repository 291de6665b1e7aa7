#pragma once

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "rendezvous/store_client/call.hpp"
#include "rendezvous/store_client/connection.hpp"
#include "rendezvous/store_client/options.hpp"

#include <optional>
#include <string>
#include <type_traits>

namespace muster::store_client {

/// Whether a request that may have been executed may be sent once more.
enum class Repeat { Safe, Unsafe };

/// Keeps a connection to one server over the calls of a client: makes it, makes it again when it
/// was lost, and decides which requests are repeated. One thread.
class Session {
 public:
  Session(Endpoint endpoint, ConnectOptions options);

  [[nodiscard]] const Endpoint& endpoint() const noexcept { return endpoint_; }
  [[nodiscard]] const ConnectOptions& options() const noexcept { return options_; }
  /// What the present or else the last server speaks.
  [[nodiscard]] ServerDialect dialect() const noexcept;

  /// Makes the first connection, by the rules of ConnectOptions.
  [[nodiscard]] Result<void> connect();

  /// Sees to it that there is a usable connection to a server that has the operation, or may.
  [[nodiscard]] Result<void> make_ready(Call& call, Operation operation);

  /// Has `exchange` send a request of `operation` and read its reply. When the connection breaks, a
  /// new one is made and the exchange repeated, as far as `repeat` and the time allow.
  template <class Exchange>
  [[nodiscard]] auto run(Call& call, Operation operation, Repeat repeat, Exchange exchange)
      -> Result<typename std::invoke_result_t<Exchange, Connection&>::value_type> {
    for (;;) {
      if (auto ready = make_ready(call, operation); !ready) return pass(std::move(ready.error()));
      auto outcome = exchange(*connection_);
      if (connection_->take_answered()) unconfirmed_ = {};
      if (outcome && connection_->has_leftover())
        outcome = garbage("more bytes than an answer has");
      if (outcome) {
        connection_->note_supported(operation);
        call.outage.reset();
        if constexpr (std::is_void_v<typename decltype(outcome)::value_type>) {
          return {};
        } else {
          return *std::move(outcome);
        }
      }
      if (auto error = settle(call, operation, repeat, outcome.error()))
        return pass(*std::move(error));
    }
  }

  /// The call has just sent something that no server answers: unconfirmed until any later reply on
  /// this connection.
  void note_write(const Call& call);

  /// Makes sure that the server has executed all such writes. Fails if any went down with a
  /// connection since the last flush: then nobody knows.
  [[nodiscard]] Result<void> flush(Call& call);

  [[nodiscard]] Error error(const Call& call, Errc code, std::string_view cause) const {
    return call_error(call, endpoint_, code, cause);
  }

 private:
  struct Writes {
    std::size_t count = 0;
    std::string first;  ///< `set 'x'`.
    std::string fate;   ///< Why the connection broke.
  };

  [[nodiscard]] Result<void> make_connection(Call& call);
  [[nodiscard]] std::optional<Error> settle(Call& call, Operation operation, Repeat repeat,
                                            const Fault& fault);
  [[nodiscard]] Error lacks(const Call& call, Operation operation) const;
  void drop_connection(const std::string& cause);

  Endpoint endpoint_;
  ConnectOptions options_;
  std::optional<Connection> connection_;
  ServerDialect dialect_;
  Writes unconfirmed_;  ///< Sent on the present connection, with no reply since.
  Writes lost_;         ///< Unconfirmed when their connection broke.
};

}  // namespace muster::store_client

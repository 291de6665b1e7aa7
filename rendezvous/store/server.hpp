#pragma once

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/log/log.hpp"
#include "base/posix/fd.hpp"
#include "rendezvous/store/door.hpp"
#include "rendezvous/store/limits.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

namespace muster::store {

struct ServerOptions {
  Limits limits;
  std::optional<Dialect> dialect;   ///< All clients speak this one; otherwise each shows its own.
  bool refuse_unvalidated = false;  ///< Turns away dialects A and B, which begin without VALIDATE.
  Door door;                        ///< Whom it admits; all, unless told otherwise.
};

struct Stats {
  std::size_t connections = 0;
  std::size_t keys = 0;
  std::size_t stored_bytes = 0;    ///< Of keys, values, queues and waits.
  std::size_t buffered_bytes = 0;  ///< Of unfinished requests and replies that were not taken.
  std::uint64_t operations = 0;    ///< Since the start.
  std::uint64_t refused = 0;       ///< Connections closed for a reason, since the start.
};

/// A client whose WAIT or BARRIER is not answered yet.
struct Waiter {
  Endpoint client;                ///< Numeric.
  std::vector<std::string> keys;  ///< That it still lacks.
  TimePoint since;
};

/// Hosts a c10d store that PyTorch 1.13 to 2.15 take for their own; what it does differently is in
/// docs/reference/store.md. Loop thread only.
///
/// A peer can cost its own connection, never the others': whatever breaks the protocol or a limit
/// closes the connection, with one line in the log.
class Server {
 public:
  /// `bound_socket` comes from posix::bind_tcp; from now on it listens. `logger` outlives the
  /// server.
  static Result<std::unique_ptr<Server>> start(boost::asio::any_io_executor executor,
                                               posix::Fd bound_socket, ServerOptions options,
                                               Logger& logger);
  /// Without a listener of its own: somebody else accepts connections and hands them over.
  static Result<std::unique_ptr<Server>> start(boost::asio::any_io_executor executor,
                                               ServerOptions options, Logger& logger);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  /// Closes the listener and every connection at once.
  ~Server();

  /// Serves a connection that somebody else accepted: non-blocking, close-on-exec, tuned for
  /// requests.
  void adopt(posix::Fd socket);

  /// From now on this address (numeric, without a port) may come as well.
  Result<void> admit(const std::string& address);
  /// Called with the address of each connection that the door turned away, after the warning; from
  /// the loop, once a minute and address at most.
  void on_turned_away(std::function<void(const std::string& address)> handler);

  /// Unspecified where it has no listener of its own.
  [[nodiscard]] Endpoint endpoint() const;
  [[nodiscard]] Stats stats() const;
  [[nodiscard]] std::vector<Waiter> waiters() const;

 private:
  class Loop;
  explicit Server(std::shared_ptr<Loop> loop);

  std::shared_ptr<Loop> loop_;
};

}  // namespace muster::store

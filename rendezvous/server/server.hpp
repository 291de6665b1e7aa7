#pragma once

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "base/log/log.hpp"
#include "base/posix/fd.hpp"
#include "rendezvous/core/job_view.hpp"
#include "rendezvous/core/rendezvous.hpp"
#include "rendezvous/store/server.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

namespace muster::rendezvous {

/// A rendezvous server: the core behind one port (design section 3). Loop thread only.
///
/// The first bytes of a connection decide what it speaks: the attendance of agents (0xF5), gRPC
/// ("PRI"), HTTP/1.1 (its methods), else the c10d store. They are looked at, not consumed. What
/// does not parse or breaks a limit costs its own connection, with one line in the log.
class Server {
 public:
  struct Options {
    std::vector<posix::Fd> listeners;  ///< By `listen`.
    Rendezvous::Settings core;
    std::optional<std::string> token;  ///< Guards the attendance.
    store::ServerOptions store;
    /// The store is open to all, always: real torchrun agents may meet there. False: it is open
    /// only while a job keeps its workers' store here (JobSettings::store_on_server), to that
    /// job's nodes and to what `store.door` allows.
    bool serves_store = true;
    /// Of all kinds together; a gRPC one counts twice, as it takes two descriptors. Those beyond
    /// are closed at once. The store's are at most a third, so that nodes always find room.
    std::size_t connections = 300'000;
  };

  /// A socket that listens there. Only who has it may call itself the endpoint's server: several
  /// processes may bind one port at a time, and all but one of them then fail to listen. What
  /// connects before `start` waits in the kernel. Errors: posix::take_port's; a port that is taken
  /// is InvalidArgument, and its holder is not looked for: most of those that try join it.
  static Result<posix::Fd> listen(const Endpoint& endpoint);

  /// `logger` outlives the server. The handlers below are set before the loop runs on.
  static Result<std::unique_ptr<Server>> start(boost::asio::io_context& loop, Options options,
                                               Logger& logger);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  /// Of the first listener, numeric.
  [[nodiscard]] Endpoint endpoint() const;

  /// Each decision, after the server has logged it.
  void on_note(std::function<void(const Rendezvous::Note&)> handler);
  /// A job has its verdict and all its agents left.
  void on_ended(std::function<void(const std::string& job, const Verdict&)> handler);
  /// Takes connections that begin as gRPC's do: non-blocking, close-on-exec, TCP_NODELAY and
  /// TCP_USER_TIMEOUT set, no byte consumed. `peer` is `host:port`, numeric. None set: they are
  /// closed, with one line in the log. A connection is one of kMaxGrpc until it is shut down in
  /// both directions, by gRPC (which does so before it closes it) or by the peer's reset: whoever
  /// takes it must not close it only.
  void on_grpc(std::function<void(posix::Fd socket, std::string peer)> handler);

  /// What an operator asks. `done` is called from the loop, once, possibly within this call;
  /// Cancelled after `stop`.
  void command(std::string job, Command command, std::function<void(Result<std::string>)> done);

  /// This server goes, and none comes after it: whoever attends a job is told to end.
  void abandon(const std::string& reason);

  [[nodiscard]] std::size_t job_count() const;  ///< That have not ended.
  [[nodiscard]] std::vector<JobView> jobs() const;
  [[nodiscard]] std::optional<JobView> job(const std::string& id) const;
  /// All that is remembered of the newest job of this id that has ended, for a server after this
  /// one (Rendezvous::Settings::kept).
  [[nodiscard]] std::optional<Archive::Ended> ended(const std::string& id) const;

  /// gRPC connections at one time; one more is closed at once. An operator takes one for as long as
  /// a command lasts, a watcher one.
  static constexpr std::size_t kMaxGrpc = 256;

  struct Stats {
    std::size_t attendances = 0;  ///< Connections whose Hello was taken.
    std::size_t connections = 0;  ///< All but the store's.
    std::size_t refused = 0;      ///< Closed for a reason, since the start.
    store::Stats store;
  };
  [[nodiscard]] Stats stats() const;

  /// From now on /healthz says 503, so that whoever watches it sends nobody here.
  void retire();

  /// Stops answering and ordering, then closes the listeners and all connections (protocol.md 6).
  void stop();

 private:
  class Loop;
  explicit Server(std::shared_ptr<Loop> loop);

  std::shared_ptr<Loop> loop_;
};

}  // namespace muster::rendezvous

#pragma once

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "base/log/log.hpp"
#include "base/membership.hpp"
#include "launcher/hosting.hpp"
#include "rendezvous/server/control.hpp"
#include "rendezvous/server/local_server_file.hpp"
#include "rendezvous/server/server.hpp"
#include "rendezvous/server/server_board.hpp"
#include "rendezvous/store/door.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

namespace muster::launcher {

/// The rendezvous server of one job, in its launcher's process: attendance, the workers' store
/// where its port is fixed, and what the user's musterctl asks. Loop thread only.
class EmbeddedServer {
 public:
  struct Settings {
    std::string job;
    Duration lease{};                  ///< Of the job: the longest that it admits. 0: none.
    std::optional<std::string> token;  ///< Given by the user.
    std::string control_token;         ///< For musterctl, where none was given; random.
    std::vector<store::Network> store_allow;
    store::ServerOptions store;
    std::uint32_t epoch_bits = 0;  ///< Random.
    std::uint64_t seed = 0;        ///< Random.
    /// Left there while a job is under way: who finds none at the start is the first at the
    /// endpoint (protocol.md 6). Empty: that can't be known here, and the server always recovers.
    std::string marker;
    std::string runtime_folder;  ///< Of the user: where musterctl finds us.
  };

  /// Binds, and serves from then on. InvalidArgument: the port is taken.
  static Result<std::unique_ptr<EmbeddedServer>> start(boost::asio::io_context& loop,
                                                       const Binding& binding, std::uint16_t port,
                                                       Settings settings, Logger& logger);
  EmbeddedServer(const EmbeddedServer&) = delete;
  EmbeddedServer& operator=(const EmbeddedServer&) = delete;
  ~EmbeddedServer();

  /// Where this machine's own agent finds it: numeric.
  [[nodiscard]] Endpoint endpoint() const;

  /// This node goes: whoever attends a job that has not ended is told to end, worth a requeue. The
  /// server serves until it is over, for who must still hear that.
  void abandon(const std::string& reason);
  /// The job has its verdict, and all its agents have left.
  [[nodiscard]] bool is_over() const { return is_over_; }
  void on_over(std::function<void()> handler) { on_over_ = std::move(handler); }

 private:
  EmbeddedServer(boost::asio::io_context& loop, std::unique_ptr<rendezvous::Server> server,
                 Settings settings, Logger& logger);

  std::unique_ptr<rendezvous::Server> server_;
  Settings settings_;
  rendezvous::ServerBoard board_;
  std::unique_ptr<rendezvous::Control> control_;
  std::optional<rendezvous::LocalServerFile> file_;
  std::function<void()> on_over_;
  bool is_over_ = false;
  bool leaves_marker_ = false;
};

}  // namespace muster::launcher

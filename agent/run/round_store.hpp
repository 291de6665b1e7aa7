#pragma once

#include "agent/run/store_port.hpp"
#include "base/log/log.hpp"
#include "base/membership.hpp"
#include "rendezvous/store/server.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

namespace muster::agent {

/// The store of a round, where this node hosts it, and the port of the next one. Loop thread only.
class RoundStore {
 public:
  struct Settings {
    StorePort::Settings port;
    store::ServerOptions options;
    std::vector<store::Network> allow;  ///< Who may come beside the job's nodes.
    bool is_open = false;               ///< Everybody may.
    /// The round's store turned this address away, and has said so in the log.
    std::function<void(RoundId round, const std::string& address)> on_turned_away;
  };

  /// `first_port`: reserved already, for the first round; none: `reserve` does it.
  RoundStore(boost::asio::io_context& loop, Settings settings, posix::Fd first_port,
             Logger& logger);

  /// Where the next one will be.
  [[nodiscard]] Result<Endpoint> reserve() { return port_.reserve(); }
  /// At another port than before, where there is one. The store that is served stays if
  /// `others_meet` there, unless it has the only port that can be had.
  [[nodiscard]] Result<Endpoint> reserve_next(bool others_meet);

  [[nodiscard]] Result<void> host(const Assignment& assignment);
  void close() { server_.reset(); }

 private:
  store::Door door_for(const Assignment& assignment) const;

  boost::asio::io_context& loop_;
  Settings settings_;
  Logger& logger_;
  StorePort port_;
  std::unique_ptr<store::Server> server_;
};

}  // namespace muster::agent

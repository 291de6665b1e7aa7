#pragma once

#include "base/ids.hpp"
#include "base/log/log.hpp"
#include "base/membership.hpp"
#include "base/posix/fd.hpp"
#include "rendezvous/core/rendezvous.hpp"
#include "rendezvous/server/job_board.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

namespace muster::rendezvous {

/// Serves muster.v1.Control (proto/muster/v1/control.proto) on connections that a rendezvous
/// server's port took: operators list, watch and steer its jobs. Loop thread only.
///
/// gRPC has threads of its own; they carry each call to the loop and nothing more. They, and all
/// that gRPC allocates, begin with the first connection: a server that nobody steers pays nothing.
class Control {
 public:
  struct Options {
    std::string token;  ///< What callers must show. Not empty.
    /// WatchEvents at one time; one more is refused with RESOURCE_EXHAUSTED.
    std::size_t watchers = 64;
    /// Events that a watcher has not taken yet; what comes beyond is lost to it, and counted.
    std::size_t unread_events = 1024;
    /// Commands that the jobs have not answered yet; one more is refused with RESOURCE_EXHAUSTED.
    std::size_t commands = 256;
    /// For a command's answer; then DEADLINE_EXCEEDED. A caller may have less patience.
    Duration patience = std::chrono::seconds(30);
  };

  /// `board` and `logger` outlive it.
  Control(boost::asio::io_context& loop, JobBoard& board, Options options, Logger& logger);
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;
  ~Control();  ///< As `stop`.

  /// Server::on_grpc's handler: the connection is gRPC's from now on.
  void adopt(posix::Fd socket, std::string peer);
  /// Server::on_note's: watchers are told, and of what it changed in its job.
  void noted(const Rendezvous::Note& note);
  /// Server::on_ended's.
  void ended(const std::string& job, const Verdict& verdict);

  /// Answers whatever is open with UNAVAILABLE and ends gRPC. Takes milliseconds, at worst a
  /// second where a peer does not read. Later connections are closed.
  void stop();

 private:
  class Desk;
  std::shared_ptr<Desk> desk_;
};

}  // namespace muster::rendezvous

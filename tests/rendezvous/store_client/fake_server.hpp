#pragma once

#include "base/endpoint.hpp"
#include "base/posix/fd.hpp"
#include "rendezvous/store_client/dialect.hpp"

#include <atomic>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace muster::store_client {

/// One accepted connection, as a script sees it. It is closed when the script returns.
class Peer {
 public:
  Peer(posix::Fd socket, int number) : number_(number), socket_(std::move(socket)) {}

  /// 0 for the first connection of the server.
  [[nodiscard]] int number() const { return number_; }

  /// That many bytes; fewer if the client closes, or the test ends.
  std::string read(std::size_t size);
  void write(std::string_view bytes);
  /// Until the client closes, or the test ends. Returns what it sent.
  std::string stay_silent();
  void close();
  /// Closes with a reset instead of a FIN.
  void reset();

 private:
  friend class FakeServer;

  const int number_;
  std::mutex mutex_;  // Guards the descriptor against being closed while it is shut down.
  posix::Fd socket_;
};

/// Listens on a free port of 127.0.0.1 and plays a script on every connection, each in a thread of
/// its own.
class FakeServer {
 public:
  using Script = std::function<void(Peer&)>;

  explicit FakeServer(Script script);
  /// Listens on a socket that is bound already.
  FakeServer(Script script, posix::Fd bound);
  ~FakeServer();

  [[nodiscard]] Endpoint endpoint() const { return endpoint_; }
  [[nodiscard]] int connections() const { return connections_; }

 private:
  void accept_all();

  Script script_;
  posix::Fd listener_;
  Endpoint endpoint_;
  posix::Pipe stop_;
  std::atomic<int> connections_ = 0;
  std::list<Peer> peers_;
  std::vector<std::jthread> threads_;
  std::jthread acceptor_;
};

/// How PyTorch's servers of a dialect differ to a client that tries to find out which it is.
enum class Backend { Poll, Libuv };

/// Greets as a server of the dialect greets, then plays the script on the connections that the
/// client goes on with.
FakeServer::Script speaking(Dialect dialect, const FakeServer::Script& script,
                            Backend backend = Backend::Poll);

/// Reads a WAIT of dialect C or later, whose opcode has been read already.
void read_keys(Peer& peer);

/// Bytes of hex digits: `00 cef7853c`.
std::string bytes(std::string_view hex);

/// The 8 bytes of a number on the wire.
std::string number(std::uint64_t value);

}  // namespace muster::store_client

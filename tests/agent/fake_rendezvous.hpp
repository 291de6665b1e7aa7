#pragma once

#include "base/endpoint.hpp"
#include "base/posix/socket.hpp"
#include "rendezvous/client/frames.hpp"
#include "rendezvous/client/wire.hpp"

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

namespace muster::agent {

/// A rendezvous server without a mind: it shakes hands, hands what agents say to the test, and says
/// what the test wants. It answers each ping while `answers_pings`. On one loop with the test, or
/// in another process.
class FakeRendezvous {
 public:
  using Socket = boost::asio::ip::tcp::socket;

  explicit FakeRendezvous(boost::asio::io_context& loop)
      : acceptor_(loop, {boost::asio::ip::make_address("127.0.0.1"), 0}) {
    accept();
  }
  ~FakeRendezvous() { hang_up(); }
  FakeRendezvous(const FakeRendezvous&) = delete;
  FakeRendezvous& operator=(const FakeRendezvous&) = delete;

  Endpoint endpoint() const { return {"127.0.0.1", acceptor_.local_endpoint().port()}; }

  std::function<void(const Report&)> on_report;
  std::function<void(const Farewell&)> on_farewell;
  bool answers_pings = true;
  std::uint64_t newest_ping = 0;
  int greetings = 0;

  /// On the connection of the newest Hello.
  void say(const ServerMessage& message) {
    if (voice_) send(voice_, rendezvous::ServerFrame(message));
  }
  void order(Order order) { say(Directive{newest_ping, std::nullopt, std::move(order)}); }
  /// Of all connections.
  void hang_up() {
    boost::system::error_code ignored;
    for (const auto& peer : peers_) (void)peer->socket.close(ignored);
    peers_.clear();
    voice_.reset();
  }
  void stop_listening() { acceptor_.close(); }

 private:
  struct Peer {
    explicit Peer(Socket connection) : socket(std::move(connection)) {}
    Socket socket;
    std::string in;
    bool has_magic = false;
    std::array<char, 4096> room{};
  };
  using PeerPtr = std::shared_ptr<Peer>;

  void accept() {
    acceptor_.async_accept([this](const boost::system::error_code& error, Socket socket) {
      if (error) return;
      peers_.push_back(std::make_shared<Peer>(std::move(socket)));
      read(peers_.back());
      accept();
    });
  }

  void read(const PeerPtr& peer) {
    peer->socket.async_read_some(
        boost::asio::buffer(peer->room),
        [this, peer](const boost::system::error_code& error, std::size_t size) {
          if (error) return;
          peer->in.append(peer->room.data(), size);
          take(peer);
          if (peer->socket.is_open()) read(peer);
        });
  }

  void take(const PeerPtr& peer) {
    if (!peer->has_magic) {
      if (peer->in.size() < rendezvous::kMagic.size()) return;
      peer->in.erase(0, rendezvous::kMagic.size());
      peer->has_magic = true;
    }
    for (;;) {
      const auto body = rendezvous::first_frame(peer->in, rendezvous::kMaxFrameBytes).value();
      if (!body) return;
      const auto frame = rendezvous::decode_client_frame(*body).value().value();
      peer->in.erase(0, rendezvous::kFrameHeaderBytes + body->size());
      std::visit([this, &peer](const auto& said) { hear(peer, said); }, frame);
    }
  }

  void hear(const PeerPtr&, const rendezvous::Unproven&) {}
  void hear(const PeerPtr& peer, const rendezvous::Open&) {
    std::string bytes(rendezvous::kMagic);
    rendezvous::encode(
        rendezvous::ServerFrame(rendezvous::Challenge{.version = "fake", .nonce = nonce_}), bytes);
    write(peer, bytes);
  }
  void hear(const PeerPtr& peer, const rendezvous::Greeting& greeting) {
    voice_ = peer;
    ++greetings;
    newest_ping = greeting.hello.ping;
    say(Welcome{"fake"});
    if (answers_pings) say(Pong{greeting.hello.ping, false});
    if (on_report) on_report(greeting.hello);
  }
  void hear(const PeerPtr& peer, const rendezvous::Parting& parting) {
    if (on_farewell) on_farewell(parting.farewell);
    send(peer, rendezvous::ServerFrame(rendezvous::PartingSeen{}));
  }
  void hear(const PeerPtr& peer, const AgentMessage& message) {
    if (const auto* ping = std::get_if<Ping>(&message)) {
      newest_ping = ping->number;
      if (answers_pings) send(peer, rendezvous::ServerFrame(ServerMessage(Pong{ping->number})));
    } else if (on_report) {
      on_report(std::get<Report>(message));
    }
  }

  void send(const PeerPtr& peer, const rendezvous::ServerFrame& frame) {
    std::string bytes;
    rendezvous::encode(frame, bytes);
    write(peer, bytes);
  }
  static void write(const PeerPtr& peer, std::string_view bytes) {
    boost::system::error_code ignored;
    boost::asio::write(peer->socket, boost::asio::buffer(bytes), ignored);
  }

  boost::asio::ip::tcp::acceptor acceptor_;
  std::vector<PeerPtr> peers_;
  PeerPtr voice_;
  std::string nonce_ = std::string(32, 'n');
};

}  // namespace muster::agent

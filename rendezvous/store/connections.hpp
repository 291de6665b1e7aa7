#pragma once

#include "base/endpoint.hpp"
#include "base/ids.hpp"
#include "base/posix/fd.hpp"
#include "base/posix/socket.hpp"
#include "rendezvous/core/kv_command.hpp"
#include "rendezvous/store/decoder.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::store {

/// Where a connection comes from, in few bytes: there may be a hundred thousand.
struct Peer {
  std::array<std::uint8_t, 16> address{};  ///< IPv6, or IPv4 mapped into it.
  std::uint32_t scope = 0;
  std::uint16_t port = 0;
};
[[nodiscard]] Peer to_peer(const posix::SocketAddress& address) noexcept;
[[nodiscard]] Endpoint to_endpoint(const Peer& peer);

/// One client's connection. At rest it holds no buffers.
struct Connection {
  posix::Fd socket;
  rendezvous::KvClient id;
  Peer peer;
  Decoder decoder;

  std::string in{};           ///< The beginning of a request; while paused, requests too.
  std::string out{};          ///< Due to the client,
  std::size_t sent = 0;       ///< of which so much is gone.
  std::size_t accounted = 0;  ///< What the two hold, as the total knows it.

  std::uint32_t interest = 0;  ///< Epoll's, as set.
  bool is_inside = false;      ///< The door has let it in, after its first bytes.
  bool has_finished = false;   ///< It will send no more.
  bool is_paused = false;      ///< Not read from until it takes what is due.
  bool is_dismissed = false;   ///< It was refused: it gets what it is due, no request is read.
  bool is_woken = false;       ///< In the list of those to send to at the end of the turn.

  std::optional<TimePoint> partial_since{};  ///< When a request began that is not complete.
  std::optional<TimePoint> held_until{};     ///< When an Undecided request is settled.
  std::optional<TimePoint> waiting_since{};  ///< When a reply was last withheld.
};

/// The open connections, by name and counted by address. A name is never used twice.
class Connections {
 public:
  Connection& open(posix::Fd socket, const Peer& peer, const Decoder::Rules& rules);
  /// Closes the socket.
  void close(const Connection& connection);

  /// nullptr if it was closed.
  [[nodiscard]] Connection* find(rendezvous::KvClient id) noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return open_; }
  [[nodiscard]] std::size_t from_address_of(const Peer& peer) const;

  template <class Visit>
  void for_each(Visit&& visit) {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      if (slots_[slot].connection) visit(*slots_[slot].connection);
    }
  }

 private:
  struct Slot {
    std::unique_ptr<Connection> connection;
    std::uint32_t generation = 0;
  };
  std::vector<Slot> slots_;  // A name is a slot and its generation.
  std::vector<std::uint32_t> free_;
  std::map<std::array<std::uint8_t, 16>, std::size_t> by_address_;
  std::size_t open_ = 0;
};

}  // namespace muster::store

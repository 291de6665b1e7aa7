#include "rendezvous/store/connections.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <cstring>
#include <netinet/in.h>

namespace muster::store {
namespace {

constexpr std::size_t kMappedPrefix = 12;  // ::ffff:0:0/96
constexpr unsigned kSlotBits = 32;

std::uint32_t slot_of(rendezvous::KvClient id) noexcept {
  return static_cast<std::uint32_t>(id.value);
}

}  // namespace

Peer to_peer(const posix::SocketAddress& address) noexcept {
  Peer peer;
  if (address.family() == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address.storage, sizeof v4);
    peer.address[10] = peer.address[11] = 0xff;
    std::memcpy(&peer.address[kMappedPrefix], &v4.sin_addr, sizeof v4.sin_addr);
    peer.port = ntohs(v4.sin_port);
  } else if (address.family() == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, &address.storage, sizeof v6);
    std::memcpy(peer.address.data(), &v6.sin6_addr, peer.address.size());
    peer.scope = v6.sin6_scope_id;
    peer.port = ntohs(v6.sin6_port);
  }
  return peer;
}

Endpoint to_endpoint(const Peer& peer) {
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  std::memcpy(&v6.sin6_addr, peer.address.data(), peer.address.size());
  v6.sin6_scope_id = peer.scope;
  v6.sin6_port = htons(peer.port);
  posix::SocketAddress address;
  std::memcpy(&address.storage, &v6, sizeof v6);
  address.size = sizeof v6;
  return posix::to_endpoint(address);
}

Connection& Connections::open(posix::Fd socket, const Peer& peer, const Decoder::Rules& rules) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  const rendezvous::KvClient id{std::uint64_t{slots_[slot].generation} << kSlotBits | slot};
  slots_[slot].connection = std::make_unique<Connection>(
      Connection{.socket = std::move(socket), .id = id, .peer = peer, .decoder = Decoder(rules)});
  ++by_address_[peer.address];
  ++open_;
  return *slots_[slot].connection;
}

void Connections::close(const Connection& connection) {
  const std::uint32_t slot = slot_of(connection.id);
  const auto counted = by_address_.find(connection.peer.address);
  MUSTER_ASSERT(counted != by_address_.end());
  if (--counted->second == 0) by_address_.erase(counted);
  --open_;
  slots_[slot].connection.reset();
  ++slots_[slot].generation;
  free_.push_back(slot);
}

Connection* Connections::find(rendezvous::KvClient id) noexcept {
  const std::uint32_t slot = slot_of(id);
  if (slot >= slots_.size()) return nullptr;
  Connection* const connection = slots_[slot].connection.get();
  return connection != nullptr && connection->id == id ? connection : nullptr;
}

std::size_t Connections::from_address_of(const Peer& peer) const {
  const auto found = by_address_.find(peer.address);
  return found == by_address_.end() ? 0 : found->second;
}

}  // namespace muster::store

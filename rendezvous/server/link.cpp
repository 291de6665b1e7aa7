#include "rendezvous/server/link.hpp"

#include "base/assert.hpp"

#include <utility>

namespace muster::rendezvous {

Link& Links::open(posix::Fd socket, const store::Peer& peer) {
  const LinkId id{++last_};
  ++by_address_[peer.address];
  const auto [at, is_new] =
      links_.try_emplace(id.value, Link{.socket = std::move(socket), .id = id, .peer = peer});
  MUSTER_ASSERT(is_new);
  return at->second;
}

posix::Fd Links::take(LinkId id) {
  const auto at = links_.find(id.value);
  MUSTER_ASSERT(at != links_.end());
  const auto counted = by_address_.find(at->second.peer.address);
  MUSTER_ASSERT(counted != by_address_.end());
  if (--counted->second == 0) by_address_.erase(counted);
  auto socket = std::move(at->second.socket);
  links_.erase(at);
  return socket;
}

Link* Links::find(LinkId id) noexcept {
  const auto at = links_.find(id.value);
  return at == links_.end() ? nullptr : &at->second;
}

std::size_t Links::from_address_of(const store::Peer& peer) const {
  const auto found = by_address_.find(peer.address);
  return found == by_address_.end() ? 0 : found->second;
}

}  // namespace muster::rendezvous

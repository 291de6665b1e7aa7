#include "rendezvous/server/link.hpp"

#include "base/assert.hpp"

#include <utility>

namespace muster::rendezvous {

Link& Links::open(posix::Fd socket, const store::Peer& peer) {
  const LinkId id{++last_};
  ++strangers_[peer.address];
  const auto [at, is_new] =
      links_.try_emplace(id.value, Link{.socket = std::move(socket), .id = id, .peer = peer});
  MUSTER_ASSERT(is_new);
  return at->second;
}

posix::Fd Links::take(LinkId id) {
  const auto at = links_.find(id.value);
  MUSTER_ASSERT(at != links_.end());
  know(at->second);
  auto socket = std::move(at->second.socket);
  links_.erase(at);
  return socket;
}

void Links::know(Link& link) {
  if (!std::exchange(link.is_stranger, false)) return;
  const auto counted = strangers_.find(link.peer.address);
  MUSTER_ASSERT(counted != strangers_.end());
  if (--counted->second == 0) strangers_.erase(counted);
}

Link* Links::find(LinkId id) noexcept {
  const auto at = links_.find(id.value);
  return at == links_.end() ? nullptr : &at->second;
}

std::size_t Links::strangers_from(const store::Peer& peer) const {
  const auto found = strangers_.find(peer.address);
  return found == strangers_.end() ? 0 : found->second;
}

}  // namespace muster::rendezvous

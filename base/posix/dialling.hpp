#pragma once

#include "base/ids.hpp"
#include "base/posix/fd.hpp"
#include "base/posix/socket.hpp"

#include <optional>

namespace muster::posix {

/// A connection that is on its way, for whoever watches descriptors: writable when it stands or has
/// failed. Non-blocking, close-on-exec, TCP_NODELAY. `from`: the local address to take; its port is
/// chosen with the connection's other end in view, so that none is used up. Fails with the bare
/// cause.
[[nodiscard]] Result<Fd> begin_connect(const SocketAddress& to,
                                       const std::optional<SocketAddress>& from);

/// How it went, once it is writable: an errno value, 0 if it stands.
[[nodiscard]] int connect_error(int socket) noexcept;

[[nodiscard]] SocketAddress peer_address(int socket);

/// The connection breaks when the peer has not confirmed what was sent for so long.
void set_user_timeout(int socket, Duration timeout) noexcept;

}  // namespace muster::posix

#pragma once

#include "base/endpoint.hpp"
#include "base/posix/fd.hpp"

#include <cstdint>
#include <string>
#include <sys/socket.h>

namespace muster::posix {

/// A socket address as the kernel takes it.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  [[nodiscard]] const sockaddr* raw() const noexcept {
    return reinterpret_cast<const sockaddr*>(&storage);
  }
  [[nodiscard]] int family() const noexcept { return storage.ss_family; }
};

/// From a numeric address (IPv4, or IPv6 with an optional %scope). No name is ever looked up; a
/// name is NotFound.
[[nodiscard]] Result<SocketAddress> numeric_address(const Endpoint& endpoint);

/// Numeric host and port of an address; a v4-mapped IPv6 address comes out as IPv4.
[[nodiscard]] Endpoint to_endpoint(const SocketAddress& address);

[[nodiscard]] SocketAddress local_address(int socket);

/// Where somebody on this machine dials to reach who is bound there: the wildcard is no address.
[[nodiscard]] Endpoint dialled_from_here(Endpoint bound);

/// A TCP socket bound to a numeric address, close-on-exec and non-blocking, with SO_REUSEADDR
/// (never SO_REUSEPORT) and, for the wildcard `::`, both families. It reserves the port:
/// connections are refused until `listen_on`. Port 0 takes a free one. A port that is taken fails
/// with InvalidArgument, naming the process that holds it where /proc shows it.
[[nodiscard]] Result<Fd> bind_tcp(const Endpoint& endpoint);

/// Starts listening, with the largest backlog that the system allows.
[[nodiscard]] Result<void> listen_on(int socket);

/// How a port is held until somebody serves there. Sockets that are bound only may share it: they
/// have SO_REUSEADDR, without which the connections of whoever was there before (in TIME_WAIT)
/// would keep everybody out. Once one of them listens nobody else gets it.
enum class Hold { Bound, Listening };

/// As bind_tcp; listens where that is asked for. For those who try several: a port that is taken
/// costs no walk through /proc, and its holder is not named.
[[nodiscard]] Result<Fd> take_port(const Endpoint& endpoint, Hold hold);

/// An error of `take_port` with the process that holds the port, where /proc shows it.
[[nodiscard]] Error naming_holder(Error error, std::uint16_t port);

/// `1234 (python3)` for the process that listens on a TCP port of this machine; empty where /proc
/// does not show it.
[[nodiscard]] std::string port_holder(std::uint16_t port);

}  // namespace muster::posix

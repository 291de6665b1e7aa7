#pragma once

#include "base/posix/fd.hpp"
#include "base/posix/socket.hpp"

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <poll.h>
#include <span>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace muster::posix {

// What a server that watches many connections does with their sockets. Nothing here blocks or
// allocates.

/// What came of one attempt to move bytes: how many, or why none.
struct Moved {
  enum class End {
    None,        ///< `bytes` were moved, at least one.
    WouldBlock,  ///< Nothing now.
    Finished,    ///< The peer will send no more.
    Broken,      ///< The connection is lost; `error` is an errno value.
  };
  End end = End::None;
  std::size_t bytes = 0;
  int error = 0;
};

[[nodiscard]] inline Moved receive_now(int socket, std::span<char> room, int flags = 0) noexcept {
  for (;;) {
    const auto size = ::recv(socket, room.data(), room.size(), MSG_DONTWAIT | flags);
    if (size > 0) return {.bytes = static_cast<std::size_t>(size)};
    if (size == 0) return {.end = Moved::End::Finished};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {.end = Moved::End::WouldBlock};
    return {.end = Moved::End::Broken, .error = errno};
  }
}

/// The bytes stay where they are: the next call gets them again.
[[nodiscard]] inline Moved peek_now(int socket, std::span<char> room) noexcept {
  return receive_now(socket, room, MSG_PEEK);
}

/// The socket is readable when so many bytes are there, or the end; not before.
inline void set_low_watermark(int socket, int bytes) noexcept {
  ::setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
}

[[nodiscard]] inline Moved send_now(int socket, std::string_view bytes) noexcept {
  for (;;) {
    const auto size = ::send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (size >= 0) return {.bytes = static_cast<std::size_t>(size)};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {.end = Moved::End::WouldBlock};
    return {.end = Moved::End::Broken, .error = errno};
  }
}

/// The peer gets what was sent, then the end; what it sends can still be received.
inline void finish_sending(int socket) noexcept { ::shutdown(socket, SHUT_WR); }

/// The end of the connection in both directions, for all descriptors of the socket: closing one of
/// them is none as long as there is another.
inline void hang_up(int socket) noexcept { ::shutdown(socket, SHUT_RDWR); }

/// How many of the bytes that were sent the peer's kernel has not confirmed, the end counting as
/// one.
[[nodiscard]] inline int unacknowledged_bytes(int socket) noexcept {
  int bytes = 0;
  return ::ioctl(socket, SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

/// How long a peer may be silent before the kernel asks whether it is still there, and how it asks.
struct Keepalive {
  std::chrono::seconds idle;
  std::chrono::seconds interval;
  int probes;
};

/// Sends small writes at once, and finds dead peers. On Linux what `listener` accepts inherits
/// both.
inline void tune_for_requests(int socket, const Keepalive& keepalive) noexcept {
  const auto set = [socket](int level, int option, int value) {
    ::setsockopt(socket, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, static_cast<int>(keepalive.idle.count()));
  set(IPPROTO_TCP, TCP_KEEPINTVL, static_cast<int>(keepalive.interval.count()));
  set(IPPROTO_TCP, TCP_KEEPCNT, keepalive.probes);
}

/// One connection from a listener's queue, non-blocking and close-on-exec, or why there is none.
struct Accepted {
  Fd socket;
  SocketAddress peer;
  int error = 0;  ///< An errno value: EAGAIN if the queue is empty.
};
[[nodiscard]] inline Accepted accept_now(int listener) noexcept {
  Accepted accepted;
  accepted.peer.size = sizeof accepted.peer.storage;
  accepted.socket.reset(::accept4(listener, reinterpret_cast<sockaddr*>(&accepted.peer.storage),
                                  &accepted.peer.size, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!accepted.socket) accepted.error = errno;
  return accepted;
}

/// Whether accepting failed, with this errno value, for the one connection only.
[[nodiscard]] inline bool concerns_one_connection(int error) noexcept {
  switch (error) {
    case ECONNABORTED:
    case EINTR:
    case EPERM:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
      return true;
    default:
      return false;
  }
}

/// Whether the peer will send no more than what is there already.
[[nodiscard]] inline bool has_ended(int socket) noexcept {
  pollfd entry{.fd = socket, .events = POLLRDHUP, .revents = 0};
  return ::poll(&entry, 1, 0) > 0;
}

}  // namespace muster::posix

#pragma once

#include "base/ids.hpp"
#include "base/posix/fd.hpp"
#include "base/posix/socket.hpp"

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace muster::posix {

/// Every address of a host, of both families, in the system's order of preference. A numeric host
/// is taken as it is, without a look-up. A name goes through the system's resolver, which keeps to
/// its own time limits (resolv.conf), not to a deadline of ours: callers that can't afford that
/// pass numbers. An unknown name is NotFound, a resolver that did not answer is Unavailable.
[[nodiscard]] Result<std::vector<SocketAddress>> resolve(const Endpoint& endpoint);

/// A connected TCP socket whose calls block until a deadline; without threads, signals
/// (MSG_NOSIGNAL) or Asio, for programs that own no loop. Move-only; one thread at a time.
///
/// Each call tries first and looks at the deadline only if it would have to wait: one that lies in
/// the past still takes what is there. Errors hold the bare cause, for the caller to put its act in
/// front: Timeout when the deadline passed, else Unavailable.
class TcpStream {
 public:
  [[nodiscard]] static Result<TcpStream> connect(const SocketAddress& address, TimePoint deadline);

  /// Hands all of `bytes` to the kernel. After an error the peer can't have got the whole of them.
  [[nodiscard]] Result<void> send(std::string_view bytes, TimePoint deadline);

  /// Waits for at least one byte and returns how many were read; 0: the peer has closed.
  [[nodiscard]] Result<std::size_t> receive(std::span<char> room, TimePoint deadline);

  /// Whether nothing has come and the peer has not closed: what a connection without an open
  /// request should be.
  [[nodiscard]] bool is_quiet() const noexcept;

  /// The socket, non-blocking, for somebody else's loop. Nothing is left to call here.
  [[nodiscard]] Fd release() noexcept { return std::move(socket_); }

 private:
  explicit TcpStream(Fd socket) noexcept : socket_(std::move(socket)) {}

  Fd socket_;
};

}  // namespace muster::posix

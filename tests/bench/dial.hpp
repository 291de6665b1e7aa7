#pragma once

#include "base/error.hpp"
#include "base/posix/fd.hpp"
#include "base/posix/socket.hpp"

#include <chrono>
#include <span>
#include <string>
#include <sys/types.h>

namespace muster::bench {

/// A server that says nothing for so long ends the run: a benchmark that hangs measures nothing.
inline constexpr std::chrono::seconds kSilence{20};

/// A TCP socket with TCP_NODELAY that blocks, each call for kSilence at most. Closing it resets the
/// connection, so that thousands of them leave no ports in TIME_WAIT behind.
[[nodiscard]] Result<posix::Fd> dial(const posix::SocketAddress& server);

/// The same, not blocking; the connection may still be on its way (writable once it is there).
[[nodiscard]] Result<posix::Fd> dial_nonblocking(const posix::SocketAddress& server);

void set_nonblocking(int socket);
void set_blocking(int socket);

/// On a socket that blocks: sends all, then receives exactly `reply` bytes.
[[nodiscard]] Result<std::string> exchange(int socket, const std::string& request,
                                           std::size_t reply);

/// What one call moved; 0: not now.
[[nodiscard]] Result<std::size_t> send_some(int socket, std::span<const char> bytes);

/// The same; a connection that was closed is an error.
[[nodiscard]] Result<std::size_t> receive_some(int socket, std::span<char> buffer);

}  // namespace muster::bench

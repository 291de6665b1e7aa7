#include "tests/bench/dial.hpp"

#include <cerrno>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

namespace muster::bench {
namespace {

bool is_not_now(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

Result<posix::Fd> open_socket(const posix::SocketAddress& server, int flags) {
  posix::Fd fd(::socket(server.family(), SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  if (!fd) return pass(posix::errno_error(errno, "open a socket"));
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const linger reset{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  const timeval patience{.tv_sec = kSilence.count(), .tv_usec = 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return fd;
}

Error connect_error(int error, const posix::SocketAddress& server) {
  return posix::errno_error(error, "connect to " + to_string(to_endpoint(server)));
}

}  // namespace

Result<posix::Fd> dial(const posix::SocketAddress& server) {
  auto fd = open_socket(server, 0);
  if (!fd) return fd;
  if (::connect(fd->get(), server.raw(), server.size) != 0)
    return pass(connect_error(errno, server));
  return fd;
}

Result<posix::Fd> dial_nonblocking(const posix::SocketAddress& server) {
  auto fd = open_socket(server, SOCK_NONBLOCK);
  if (!fd) return fd;
  if (::connect(fd->get(), server.raw(), server.size) != 0 && errno != EINPROGRESS) {
    return pass(connect_error(errno, server));
  }
  return fd;
}

void set_nonblocking(int socket) {
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
}

void set_blocking(int socket) { ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) & ~O_NONBLOCK); }

Result<std::string> exchange(int socket, const std::string& request, std::size_t reply) {
  for (std::size_t sent = 0; sent < request.size();) {
    const auto moved = send_some(socket, std::span(request).subspan(sent));
    if (!moved) return pass(moved.error());
    if (*moved == 0) return fail(Errc::Timeout, "send a request: not taken within 20 s");
    sent += *moved;
  }
  std::string bytes(reply, '\0');
  for (std::size_t received = 0; received < reply;) {
    const auto moved = receive_some(socket, std::span(bytes).subspan(received));
    if (!moved) return pass(moved.error());
    if (*moved == 0) return fail(Errc::Timeout, "receive a reply: nothing came within 20 s");
    received += *moved;
  }
  return bytes;
}

Result<std::size_t> send_some(int socket, std::span<const char> bytes) {
  const ssize_t moved = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (moved >= 0) return static_cast<std::size_t>(moved);
  if (is_not_now(errno)) return 0;
  return pass(posix::errno_error(errno, "send a request"));
}

Result<std::size_t> receive_some(int socket, std::span<char> buffer) {
  const ssize_t moved = ::recv(socket, buffer.data(), buffer.size(), 0);
  if (moved > 0) return static_cast<std::size_t>(moved);
  if (moved == 0)
    return fail(Errc::Unavailable, "receive a reply: the server closed the connection");
  if (is_not_now(errno)) return 0;
  return pass(posix::errno_error(errno, "receive a reply"));
}

}  // namespace muster::bench

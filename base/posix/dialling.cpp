#include "base/posix/dialling.hpp"

#include <cerrno>
#include <chrono>
#include <netinet/in.h>
#include <netinet/tcp.h>

namespace muster::posix {

Result<Fd> begin_connect(const SocketAddress& to, const std::optional<SocketAddress>& from) {
  const auto broken = [](int error) { return fail(Errc::Unavailable, errno_text(error)); };
  Fd socket(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return broken(errno);
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (from) {
    ::setsockopt(socket.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (::bind(socket.get(), from->raw(), from->size) != 0) {
      const int error = errno;
      return fail(Errc::InvalidArgument,
                  "from " + to_endpoint(*from).host + ": " + errno_text(error));
    }
  }
  // After EINTR the kernel goes on connecting, as after EINPROGRESS.
  if (::connect(socket.get(), to.raw(), to.size) != 0 && errno != EINPROGRESS && errno != EINTR) {
    return broken(errno);
  }
  return socket;
}

int connect_error(int socket) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

SocketAddress peer_address(int socket) {
  SocketAddress address;
  address.size = sizeof address.storage;
  ::getpeername(socket, reinterpret_cast<sockaddr*>(&address.storage), &address.size);
  return address;
}

void set_user_timeout(int socket, Duration timeout) noexcept {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  const auto value = static_cast<unsigned int>(milliseconds);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, sizeof value);
}

}  // namespace muster::posix

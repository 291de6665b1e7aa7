#include "base/posix/notify_socket.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <sys/un.h>
#include <utility>

namespace muster::posix {

Result<NotifySocket> NotifySocket::open(const std::string& address) {
  const std::string act = "service manager's socket '" + address + "'";
  SocketAddress target;
  auto& name = *reinterpret_cast<sockaddr_un*>(&target.storage);
  const bool abstract = address.starts_with('@');
  if (!abstract && !address.starts_with('/')) {
    return fail(Errc::InvalidArgument, act + ": neither a path nor an abstract name (@...)");
  }
  if (address.size() < 2 || address.size() >= sizeof name.sun_path) {
    return fail(Errc::InvalidArgument, act + ": no such address can be");
  }
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, address.data(), address.size());
  if (abstract) name.sun_path[0] = '\0';
  // An abstract name is as long as it says; a path ends in a zero.
  target.size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size() + (abstract ? 0 : 1));
  Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return pass(errno_error(errno, act));
  return NotifySocket(std::move(socket), target, address);
}

Result<void> NotifySocket::send(std::string_view state) const {
  for (;;) {
    const auto sent = ::sendto(socket_.get(), state.data(), state.size(),
                               MSG_DONTWAIT | MSG_NOSIGNAL, address_.raw(), address_.size);
    if (sent >= 0) return {};
    if (errno == EINTR) continue;
    return pass(errno_error(errno, "tell the service manager at '" + name_ + "'"));
  }
}

}  // namespace muster::posix

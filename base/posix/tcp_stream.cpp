#include "base/posix/tcp_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

namespace muster::posix {
namespace {

/// Whatever broke a connection is Unavailable, ETIMEDOUT of the kernel included: Timeout is for our
/// deadlines.
Error broken(int error) { return {Errc::Unavailable, errno_text(error)}; }

/// The longest single poll(2): far below what its int of milliseconds can hold; the loop below goes
/// on.
constexpr std::chrono::milliseconds kLongestPoll = std::chrono::hours(1);

/// Until the socket is ready for `events` (or broken: the next call on it tells how), or the
/// deadline has passed.
Result<void> wait_for(int socket, short events, TimePoint deadline) {
  for (;;) {
    const auto now = std::chrono::steady_clock::now();
    const auto left =
        deadline <= now
            ? std::chrono::milliseconds(0)
            : std::min(kLongestPoll, std::chrono::ceil<std::chrono::milliseconds>(
                                         std::min<Duration>(deadline - now, kLongestPoll)));
    pollfd entry{.fd = socket, .events = events, .revents = 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(left.count()));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return pass(broken(errno));
    if (ready == 0 && left.count() == 0) return fail(Errc::Timeout, "timed out");
  }
}

}  // namespace

Result<std::vector<SocketAddress>> resolve(const Endpoint& endpoint) {
  const std::string act = "look up host '" + endpoint.host + "'";
  if (auto numeric = numeric_address(endpoint)) return std::vector{*std::move(numeric)};

  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  const int status = ::getaddrinfo(endpoint.host.c_str(), nullptr, &wanted, &raw);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> found(raw, &::freeaddrinfo);
  if (status != 0) {
    const bool unknown = status == EAI_NONAME || status == EAI_NODATA || status == EAI_ADDRFAMILY;
    const std::string cause = status == EAI_SYSTEM ? errno_text(errno) : ::gai_strerror(status);
    return fail(unknown ? Errc::NotFound : Errc::Unavailable, act + ": " + cause);
  }

  std::vector<SocketAddress> addresses;
  for (const addrinfo* entry = found.get(); entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6) continue;
    SocketAddress address;
    address.size = entry->ai_addrlen;
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    // Both structures keep the port in the same place.
    reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port = htons(endpoint.port);
    addresses.push_back(address);
  }
  if (addresses.empty()) return fail(Errc::NotFound, act + ": it has no IPv4 or IPv6 address");
  return addresses;
}

Result<TcpStream> TcpStream::connect(const SocketAddress& address, TimePoint deadline) {
  Fd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return pass(broken(errno));
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket.get(), address.raw(), address.size) != 0) {
    // After EINTR the kernel goes on connecting, as after EINPROGRESS.
    if (errno != EINPROGRESS && errno != EINTR) return pass(broken(errno));
    if (auto ready = wait_for(socket.get(), POLLOUT, deadline); !ready) return pass(ready.error());
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return pass(broken(error));
  }
  return TcpStream(std::move(socket));
}

Result<void> TcpStream::send(std::string_view bytes, TimePoint deadline) {
  while (!bytes.empty()) {
    const auto sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      if (auto ready = wait_for(socket_.get(), POLLOUT, deadline); !ready) return ready;
    } else if (errno != EINTR) {
      return pass(broken(errno));
    }
  }
  return {};
}

Result<std::size_t> TcpStream::receive(std::span<char> room, TimePoint deadline) {
  for (;;) {
    const auto got = ::recv(socket_.get(), room.data(), room.size(), 0);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EAGAIN) {
      if (auto ready = wait_for(socket_.get(), POLLIN, deadline); !ready)
        return pass(ready.error());
    } else if (errno != EINTR) {
      return pass(broken(errno));
    }
  }
}

bool TcpStream::is_quiet() const noexcept {
  char byte;
  const auto got = ::recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EINTR);
}

}  // namespace muster::posix

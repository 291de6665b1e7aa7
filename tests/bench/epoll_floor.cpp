// The floor that a store on one thread can reach: epoll_wait, one recv, one send, and no work
// between them.
//
// A connection first says its part and the sizes of its requests and replies
// (wire::floor_greeting). From then on each `request` bytes are answered by `reply` zeros, those of
// one read by one send. A connection that holds its reply is sent one more zero when another one
// releases all that hold.
//
//   epoll_floor [port]     prints the port; serves until its standard input is closed.

#include "base/posix/socket.hpp"
#include "tests/bench/measure.hpp"
#include "tests/bench/requests.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <string_view>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <vector>

namespace muster::bench {
namespace {

constexpr int kEventsAtOnce = 1'024;
constexpr std::size_t kBufferBytes = 256 * 1024;
constexpr std::uint64_t kWantedDescriptors = 1'024;

struct Client {
  posix::Fd socket;
  std::array<char, wire::kFloorGreetingBytes> greeting{};
  std::size_t greeted = 0;  ///< Bytes of the greeting that are there.
  wire::FloorPart part{};
  std::uint32_t request = 0;
  std::uint32_t reply = 0;
  std::uint64_t partial = 0;  ///< Bytes of a request that is not whole yet.
  std::uint64_t owed = 0;     ///< Zeros that the socket had no room for.
};

class Floor {
 public:
  Result<Endpoint> listen(std::uint16_t port) {
    auto bound = posix::bind_tcp({"127.0.0.1", port});
    if (!bound) return pass(bound.error());
    listener_ = std::move(*bound);
    if (auto done = posix::listen_on(listener_.get()); !done) return pass(done.error());
    epoll_ = posix::Fd(::epoll_create1(EPOLL_CLOEXEC));
    watch(EPOLL_CTL_ADD, listener_.get(), EPOLLIN);
    watch(EPOLL_CTL_ADD, 0, EPOLLIN);
    return to_endpoint(posix::local_address(listener_.get()));
  }

  void serve() {
    while (!ended_) {
      epoll_event events[kEventsAtOnce];
      const int ready = ::epoll_wait(epoll_.get(), events, kEventsAtOnce, -1);
      for (int i = 0; i < ready; ++i) act(events[i].data.fd, events[i].events);
    }
  }

 private:
  void watch(int act, int fd, std::uint32_t what) {
    epoll_event event{};
    event.events = what;
    event.data.fd = fd;
    ::epoll_ctl(epoll_.get(), act, fd, &event);
  }

  void act(int fd, std::uint32_t what) {
    if (fd == 0) {
      ended_ = ::recv(0, buffer_.data(), buffer_.size(), MSG_DONTWAIT) <= 0;
    } else if (fd == listener_.get()) {
      admit();
    } else if ((what & EPOLLOUT) != 0) {
      Client& client = clients_[static_cast<std::size_t>(fd)];
      watch(EPOLL_CTL_MOD, fd, EPOLLIN);
      send_zeros(client, std::exchange(client.owed, 0));
    } else {
      serve(clients_[static_cast<std::size_t>(fd)]);
    }
  }

  void admit() {
    while (true) {
      posix::Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket) return;
      const int on = 1;
      ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      const auto index = static_cast<std::size_t>(socket.get());
      if (clients_.size() <= index) clients_.resize(index + 1);
      watch(EPOLL_CTL_ADD, socket.get(), EPOLLIN);
      clients_[index] = Client{};
      clients_[index].socket = std::move(socket);
    }
  }

  void serve(Client& client) {
    const ssize_t received = ::recv(client.socket.get(), buffer_.data(), buffer_.size(), 0);
    if (received < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (received <= 0) {
      client.socket.reset();
      return;
    }
    std::string_view bytes(buffer_.data(), static_cast<std::size_t>(received));
    if (client.greeted < client.greeting.size()) bytes = greet(client, bytes);
    if (bytes.empty()) return;
    client.partial += bytes.size();
    const std::uint64_t whole = client.partial / client.request;
    client.partial %= client.request;
    if (whole == 0) return;
    if (client.part == wire::FloorPart::Release) {
      release();
      return;
    }
    if (client.part == wire::FloorPart::HoldReply) holding_.push_back(client.socket.get());
    send_zeros(client, whole * client.reply);
  }

  /// Takes the greeting, answers it once it is whole, and returns what is behind it.
  std::string_view greet(Client& client, std::string_view bytes) {
    const std::size_t part = std::min(bytes.size(), client.greeting.size() - client.greeted);
    bytes.copy(client.greeting.data() + client.greeted, part);
    client.greeted += part;
    if (client.greeted < client.greeting.size()) return {};
    std::memcpy(&client.part, client.greeting.data(), sizeof client.part);
    std::memcpy(&client.request, client.greeting.data() + 4, sizeof client.request);
    std::memcpy(&client.reply, client.greeting.data() + 8, sizeof client.reply);
    client.request = std::max(1U, client.request);
    send_zeros(client, kGreetingReplyBytes);
    return bytes.substr(part);
  }

  void release() {
    for (const int fd : holding_) ::send(fd, kZeros.data(), 1, MSG_NOSIGNAL);
    holding_.clear();
  }

  void send_zeros(Client& client, std::uint64_t count) {
    while (count > 0 && client.owed == 0) {
      const std::size_t part = std::min<std::uint64_t>(count, kZeros.size());
      const ssize_t sent = ::send(client.socket.get(), kZeros.data(), part, MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) return;  // Gone: its next read says so.
      count -= static_cast<std::uint64_t>(std::max<ssize_t>(0, sent));
      if (sent < static_cast<ssize_t>(part)) break;
    }
    if (count == 0) return;
    if (client.owed == 0) watch(EPOLL_CTL_MOD, client.socket.get(), EPOLLIN | EPOLLOUT);
    client.owed += count;
  }

  static constexpr std::array<char, kBufferBytes> kZeros{};

  posix::Fd listener_;
  posix::Fd epoll_;
  std::vector<Client> clients_;  ///< By descriptor.
  std::vector<int> holding_;
  std::array<char, kBufferBytes> buffer_{};
  bool ended_ = false;
};

int main_with(int argc, char** argv) {
  std::uint16_t port = 0;
  const std::string_view text = argc > 1 ? argv[1] : "0";
  if (std::from_chars(text.begin(), text.end(), port).ptr != text.end()) {
    std::fprintf(stderr, "epoll_floor: '%s' is no port\n", argv[1]);
    return 2;
  }
  if (auto done = reserve_descriptors(kWantedDescriptors); !done) {
    std::fprintf(stderr, "epoll_floor: %s\n", done.error().message.c_str());
    return 1;
  }
  Floor floor;
  const auto endpoint = floor.listen(port);
  if (!endpoint) {
    std::fprintf(stderr, "epoll_floor: %s\n", endpoint.error().message.c_str());
    return 1;
  }
  std::printf("%u\n", static_cast<unsigned>(endpoint->port));
  std::fflush(stdout);
  floor.serve();
  return 0;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) { return muster::bench::main_with(argc, argv); }

#include "tests/rendezvous/store_client/fake_server.hpp"

#include "base/posix/socket.hpp"

#include <cstring>
#include <poll.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>

namespace muster::store_client {

std::string Peer::read(std::size_t size) {
  std::string got(size, '\0');
  std::size_t have = 0;
  while (have < size) {
    const auto count = ::recv(socket_.get(), got.data() + have, size - have, 0);
    if (count <= 0) break;
    have += static_cast<std::size_t>(count);
  }
  got.resize(have);
  return got;
}

void Peer::write(std::string_view text) {
  while (!text.empty()) {
    const auto count = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::string Peer::stay_silent() {
  std::string all;
  for (;;) {
    const auto byte = read(1);
    if (byte.empty()) return all;
    all += byte;
  }
}

void Peer::close() {
  const std::lock_guard lock(mutex_);
  socket_.reset();
}

void Peer::reset() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close();
}

namespace {

posix::Fd bind_anywhere() {
  auto socket = posix::bind_tcp({"127.0.0.1", 0});
  REQUIRE(socket);
  return *std::move(socket);
}

}  // namespace

FakeServer::FakeServer(Script script) : FakeServer(std::move(script), bind_anywhere()) {}

FakeServer::FakeServer(Script script, posix::Fd bound)
    : script_(std::move(script)), listener_(std::move(bound)) {
  REQUIRE(posix::listen_on(listener_.get()));
  endpoint_ = posix::to_endpoint(posix::local_address(listener_.get()));
  auto stop = posix::make_pipe();
  REQUIRE(stop);
  stop_ = *std::move(stop);
  acceptor_ = std::jthread([this] { accept_all(); });
}

FakeServer::~FakeServer() {
  stop_.writer.reset();
  acceptor_.join();
  for (auto& peer : peers_) {
    const std::lock_guard lock(peer.mutex_);
    if (peer.socket_) ::shutdown(peer.socket_.get(), SHUT_RDWR);
  }
  threads_.clear();
}

void FakeServer::accept_all() {
  for (;;) {
    pollfd entries[] = {{.fd = listener_.get(), .events = POLLIN, .revents = 0},
                        {.fd = stop_.reader.get(), .events = POLLIN, .revents = 0}};
    ::poll(entries, 2, -1);
    if (entries[1].revents != 0) return;
    posix::Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) continue;
    auto& peer = peers_.emplace_back(std::move(socket), connections_++);
    threads_.emplace_back([this, &peer] {
      script_(peer);
      peer.close();
    });
  }
}

namespace {

constexpr std::size_t kLongestKey = 1 << 20;

/// A and B know no greeting: a first byte 0 is a SET, whose key they try to allocate.
void greet_unvalidated(Peer& peer, Dialect dialect, const FakeServer::Script& script) {
  const auto first = peer.read(1);
  if (first == bytes("00")) {
    std::uint64_t length = 0;
    const auto raw = peer.read(sizeof length);
    if (raw.size() < sizeof length) return;
    std::memcpy(&length, raw.data(), sizeof length);
    if (length > kLongestKey) return peer.reset();
  } else if (first == bytes("06")) {
    peer.write(number(3));
    if (dialect == Dialect::A) script(peer);
    peer.stay_silent();
  } else if (first == bytes("0b") && dialect == Dialect::B) {
    peer.write(bytes("01"));
    script(peer);
  }
}

void greet_validated(Peer& peer, Dialect dialect, const FakeServer::Script& script,
                     Backend backend) {
  if (peer.read(1) != bytes("00")) {
    if (backend == Backend::Libuv) peer.stay_silent();
    return;
  }
  if (peer.read(4) != bytes("cef7853c")) return;
  const auto next = peer.read(1);
  if (next == bytes("0d") && dialect >= Dialect::D) {
    peer.write(peer.read(4));
  } else if (next == bytes("0c")) {
    peer.write(bytes("01"));
    for (int i = 0; i < 3; ++i) {
      if (peer.read(1) == bytes("0c")) peer.write(bytes("01"));
    }
  } else {
    if (backend == Backend::Poll) peer.reset();
    return;
  }
  script(peer);
}

}  // namespace

FakeServer::Script speaking(Dialect dialect, const FakeServer::Script& script, Backend backend) {
  return [=](Peer& peer) {
    if (dialect <= Dialect::B) {
      greet_unvalidated(peer, dialect, script);
    } else {
      greet_validated(peer, dialect, script, backend);
    }
  };
}

void read_keys(Peer& peer) {
  const auto read_number = [&] {
    std::uint64_t value = 0;
    const auto raw = peer.read(sizeof value);
    std::memcpy(&value, raw.data(), raw.size());
    return value;
  };
  for (auto left = read_number(); left > 0; --left) peer.read(read_number());
}

std::string bytes(std::string_view hex) {
  std::string raw;
  std::string digits;
  for (const char digit : hex) {
    if (digit == ' ') continue;
    digits += digit;
    if (digits.size() < 2) continue;
    raw += static_cast<char>(std::stoi(digits, nullptr, 16));
    digits.clear();
  }
  return raw;
}

std::string number(std::uint64_t value) {
  std::string raw(sizeof value, '\0');
  std::memcpy(raw.data(), &value, sizeof value);
  return raw;
}

}  // namespace muster::store_client

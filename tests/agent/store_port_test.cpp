#include "agent/run/store_port.hpp"

#include "base/posix/dialling.hpp"
#include "base/posix/server_socket.hpp"
#include "base/posix/socket.hpp"

#include <array>
#include <poll.h>

#include <catch2/catch.hpp>

using namespace muster;
using namespace std::chrono_literals;
using agent::StorePort;

namespace {

constexpr auto kPatience = 20s;
const std::string kHere = "127.0.0.1";

bool becomes(short what, int descriptor) {
  pollfd waiting{.fd = descriptor, .events = what, .revents = 0};
  return ::poll(&waiting, 1, std::chrono::milliseconds(kPatience).count()) == 1;
}

/// The first of two ports beside each other that are free.
std::uint16_t two_free_ports() {
  for (int tried = 0; tried < 100; ++tried) {
    const auto one = posix::take_port({kHere, 0}, posix::Hold::Listening).value();
    const auto port = posix::to_endpoint(posix::local_address(one.get())).port;
    if (port == 65535) continue;
    const Endpoint next{kHere, static_cast<std::uint16_t>(port + 1)};
    if (posix::take_port(next, posix::Hold::Listening)) return port;
  }
  FAIL("no two free ports beside each other");
  return 0;
}

StorePort in_range(std::uint16_t first, std::uint16_t last) {
  return {{.at = {kHere, 0}, .range = agent::PortRange{first, last}}, posix::Fd()};
}

/// A connection to `to` that stands.
posix::Fd connected(const Endpoint& to) {
  auto socket = posix::begin_connect(posix::numeric_address(to).value(), std::nullopt).value();
  REQUIRE(becomes(POLLOUT, socket.get()));
  REQUIRE(posix::connect_error(socket.get()) == 0);
  return socket;
}

}  // namespace

TEST_CASE("two agents never reserve the same port of a range; a third is told what is wrong",
          "[agent][store-port]") {
  const auto first = two_free_ports();
  const auto last = static_cast<std::uint16_t>(first + 1);
  auto one = in_range(first, last);
  auto other = in_range(first, last);
  CHECK(one.reserve().value().port == first);
  CHECK(other.reserve().value().port == last);
  CHECK(one.reserve().value().port == first);  // It has it already.

  const auto none = in_range(first, last).reserve();
  REQUIRE_FALSE(none);
  const auto& message = none.error().message;
  CHECK(message.find("--port-range " + std::to_string(first) + "-" + std::to_string(last)) !=
        std::string::npos);
  CHECK(message.find("held by process") != std::string::npos);

  one.release();
  CHECK(other.reserve().value().port == last);
  CHECK(one.reserve().value().port == first);  // The next of its range is taken.
}

TEST_CASE("a port that the kernel chose is nobody else's either", "[agent][store-port]") {
  StorePort port({.at = {kHere, 0}, .range = std::nullopt}, posix::Fd());
  const auto reserved = port.reserve().value();
  CHECK_FALSE(posix::bind_tcp(reserved));
}

TEST_CASE("the connections of an earlier store keep nobody from its port", "[agent][store-port]") {
  StorePort port({.at = {kHere, 0}, .range = std::nullopt}, posix::Fd());
  const auto reserved = port.reserve().value();
  {
    const auto listener = port.take();
    const auto client = connected(reserved);
    REQUIRE(becomes(POLLIN, listener.get()));
    auto accepted = posix::accept_now(listener.get());
    REQUIRE(accepted.socket);
    accepted.socket.reset();  // The side that closes first is the one in TIME_WAIT.
    REQUIRE(becomes(POLLIN, client.get()));
  }
  StorePort same({.at = reserved, .range = std::nullopt}, posix::Fd());
  CHECK(same.reserve().value() == reserved);
}

TEST_CASE("who connects before the round begins is turned away", "[agent][store-port]") {
  StorePort port({.at = {kHere, 0}, .range = std::nullopt}, posix::Fd());
  const auto early = connected(port.reserve().value());
  const auto listener = port.take();
  REQUIRE(becomes(POLLIN, early.get()));
  std::array<char, 1> room{};
  CHECK(posix::receive_now(early.get(), room).end != posix::Moved::End::WouldBlock);
  CHECK(posix::accept_now(listener.get()).error == EAGAIN);
}

TEST_CASE("a port at which a worker will listen is bound only", "[agent][store-port]") {
  StorePort port({.at = {kHere, 0}, .range = std::nullopt, .is_agents = false}, posix::Fd());
  const auto reserved = port.reserve().value();
  CHECK(posix::take_port(reserved, posix::Hold::Listening));
}

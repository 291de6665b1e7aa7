#include "base/posix/socket.hpp"
#include "rendezvous/store_client/store_client.hpp"
#include "tests/rendezvous/store_client/fake_server.hpp"

#include <future>

#include <catch2/catch.hpp>

using namespace std::chrono_literals;

namespace muster::store_client {
namespace {

constexpr auto kTimeout = 200ms;   ///< For what has to time out.
constexpr auto kFarTimeout = 20s;  ///< For what must not.

/// The error of a connect that must fail, in time, and name the server.
Error refusal(const Endpoint& endpoint, Duration timeout) {
  const auto started = std::chrono::steady_clock::now();
  const auto store = StoreClient::connect(endpoint, {.timeout = timeout});
  CHECK(std::chrono::steady_clock::now() - started < 10 * timeout);
  REQUIRE_FALSE(store);
  CHECK(store.error().message.starts_with("connect to " + to_string(endpoint) + ": "));
  return store.error();
}

bool contains(const Error& error, std::string_view text) {
  UNSCOPED_INFO(error.message);
  return error.message.find(text) != std::string::npos;
}

void answer_num_keys(Peer& peer) {
  while (!peer.read(1).empty()) peer.write(number(3));
}

}  // namespace

TEST_CASE("the dialect of every kind of server is found", "[store_client][detection]") {
  struct Case {
    Dialect spoken;
    Backend backend;
    ServerDialect found;
  };
  const auto known = GENERATE(
      Case{Dialect::A, Backend::Poll, {Dialect::A}}, Case{Dialect::B, Backend::Poll, {Dialect::B}},
      Case{Dialect::C, Backend::Poll, {Dialect::C}}, Case{Dialect::C, Backend::Libuv, {Dialect::C}},
      Case{Dialect::D, Backend::Libuv, {Dialect::D, true}},
      Case{Dialect::G, Backend::Poll, {Dialect::D, true}});
  INFO(to_string(known.spoken));
  FakeServer server(speaking(known.spoken, answer_num_keys, known.backend));
  auto store = StoreClient::connect(server.endpoint());
  REQUIRE(store);
  CHECK(store->dialect() == known.found);
  CHECK(store->num_keys().value() == 3);
}

TEST_CASE("a dialect that is given is spoken without asking", "[store_client][detection]") {
  const auto dialect = GENERATE(Dialect::A, Dialect::B, Dialect::C, Dialect::D, Dialect::F);
  FakeServer server(speaking(dialect, answer_num_keys));
  auto store = StoreClient::connect(server.endpoint(), {.dialect = dialect});
  REQUIRE(store);
  CHECK(store->dialect() == ServerDialect{dialect});
  CHECK(store->num_keys().value() == 3);
  CHECK(server.connections() == 1);
}

TEST_CASE("the first greeting is one that old servers can only drop", "[store_client][detection]") {
  std::string greeting;
  {
    FakeServer server([&](Peer& peer) {
      if (peer.number() == 0) greeting = peer.read(10);
    });
    CHECK(refusal(server.endpoint(), kTimeout).code == Errc::Timeout);
  }
  CHECK(greeting == bytes("00 cef7853c 0d 7f7f7f7f"));
}

TEST_CASE("a server that accepts and says nothing ends the time, not the patience",
          "[store_client][detection]") {
  FakeServer server([](Peer& peer) { peer.stay_silent(); });
  const auto error = refusal(server.endpoint(), kTimeout);
  CHECK(error.code == Errc::Timeout);
  CHECK(contains(error, "timed out after 200ms: it accepted the connection, but did not answer"));
}

TEST_CASE("half an echo is no answer", "[store_client][detection]") {
  FakeServer server([](Peer& peer) {
    peer.write(bytes("7f7f"));
    peer.stay_silent();
  });
  CHECK(contains(refusal(server.endpoint(), kTimeout), "did not answer"));
}

TEST_CASE("what answers otherwise than a store is given up at once", "[store_client][detection]") {
  FakeServer server([](Peer& peer) {
    peer.write("SSH-2.0-OpenSSH_9.2\r\n");
    peer.stay_silent();
  });
  const auto error = refusal(server.endpoint(), kFarTimeout);
  CHECK(error.code == Errc::Internal);
  CHECK(contains(error, "is no c10d store: it answered 5353482d where one answers 7f7f7f7f"));
  CHECK(server.connections() == 1);
}

TEST_CASE("an absurd number of keys is no answer of an old server", "[store_client][detection]") {
  FakeServer server([](Peer& peer) {
    if (peer.number() == 0) {
      peer.read(1);  // A reset before that would look like nobody listening.
      return peer.reset();
    }
    peer.write(number(1ULL << 62));
    peer.stay_silent();
  });
  const auto error = refusal(server.endpoint(), kFarTimeout);
  CHECK(error.code == Errc::Internal);
  CHECK(contains(error, "it claims to hold 4611686018427387904 keys"));
}

TEST_CASE("a server that closes every connection is asked again, until the deadline",
          "[store_client][detection]") {
  FakeServer server([](Peer&) {});
  const auto error = refusal(server.endpoint(), kTimeout);
  CHECK(error.code == Errc::Timeout);
  CHECK(
      contains(error, "timed out after 200ms: it closes every connection (is it a c10d store?): "));
  CHECK(server.connections() > 3);
}

TEST_CASE("a server that is not up behind its proxy yet is waited for",
          "[store_client][detection]") {
  constexpr int kClosedAtFirst = 6;
  const auto greet = speaking(Dialect::G, answer_num_keys);
  FakeServer server([&](Peer& peer) {
    if (peer.number() >= kClosedAtFirst) greet(peer);
  });
  auto store = StoreClient::connect(server.endpoint());
  REQUIRE(store);
  CHECK(store->num_keys());
}

TEST_CASE("an endpoint where nobody listens is refused, at once or in time",
          "[store_client][detection]") {
  const auto reserved = posix::bind_tcp({"127.0.0.1", 0});
  REQUIRE(reserved);
  const auto endpoint = posix::to_endpoint(posix::local_address(reserved->get()));
  const auto waited = refusal(endpoint, kTimeout);
  CHECK(waited.code == Errc::Timeout);
  CHECK(contains(waited, "timed out after 200ms: Connection refused"));

  const auto started = std::chrono::steady_clock::now();
  const auto store = StoreClient::connect(endpoint, {.timeout = 1h, .wait_for_server = false});
  CHECK(std::chrono::steady_clock::now() - started < 10s);
  REQUIRE_FALSE(store);
  CHECK(store.error().code == Errc::Unavailable);
  CHECK(store.error().message == "connect to " + to_string(endpoint) + ": Connection refused");
}

TEST_CASE("a name that nobody knows is an error that says so", "[store_client][detection]") {
  const Endpoint endpoint{"no-such-host.invalid", 29500};
  // The resolver keeps its own time: on a machine whose name servers are dead it is not ours to
  // cut.
  const auto store = StoreClient::connect(endpoint, {.timeout = kTimeout});
  REQUIRE_FALSE(store);
  CHECK(store.error().message.starts_with(
      "connect to no-such-host.invalid:29500: timed out after 200ms: look up host "
      "'no-such-host.invalid': "));
}

TEST_CASE("a host name is looked up, and its addresses are tried", "[store_client][detection]") {
  FakeServer server(speaking(Dialect::G, answer_num_keys));  // On IPv4 alone.
  auto store = StoreClient::connect({"localhost", server.endpoint().port});
  REQUIRE(store);
  CHECK(store->num_keys());
}

TEST_CASE("a server may start after its client", "[store_client][detection]") {
  auto bound = posix::bind_tcp({"127.0.0.1", 0});
  REQUIRE(bound);
  const auto endpoint = posix::to_endpoint(posix::local_address(bound->get()));
  auto connecting = std::async(std::launch::async, [&] { return StoreClient::connect(endpoint); });
  // Bound but not listening refuses. No event tells that the client has met that: some tries' time
  // must do.
  CHECK(connecting.wait_for(30ms) == std::future_status::timeout);
  FakeServer server(speaking(Dialect::G, answer_num_keys), *std::move(bound));
  auto store = connecting.get();
  REQUIRE(store);
  CHECK(store->num_keys());
}

}  // namespace muster::store_client

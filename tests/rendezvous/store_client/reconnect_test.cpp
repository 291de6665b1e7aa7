// What a lost or silent connection means for the call at hand, and for the next.

#include "base/posix/socket.hpp"
#include "rendezvous/store_client/store_client.hpp"
#include "tests/rendezvous/store_client/fake_server.hpp"

#include <csignal>
#include <fcntl.h>
#include <future>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

using namespace std::chrono_literals;

namespace muster::store_client {
namespace {

/// A store in a process of its own, which kills itself as soon as a client waits.
class KilledInWait {
 public:
  KilledInWait() {
    auto listener = posix::bind_tcp({"127.0.0.1", 0});
    REQUIRE(listener);
    REQUIRE(posix::listen_on(listener->get()));
    endpoint_ = posix::to_endpoint(posix::local_address(listener->get()));
    child_ = ::fork();
    REQUIRE(child_ >= 0);
    if (child_ == 0) serve(listener->get());
  }
  ~KilledInWait() {
    int status = 0;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, &status, 0);
  }

  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }

 private:
  [[noreturn]] static void serve(int listener) {
    ::fcntl(listener, F_SETFL, 0);
    Peer peer(posix::Fd(::accept(listener, nullptr, nullptr)), 0);
    speaking(Dialect::G, [](Peer& client) {
      if (client.read(1) == bytes("06")) ::raise(SIGKILL);
    })(peer);
    ::_exit(1);
  }

  Endpoint endpoint_;
  pid_t child_ = -1;
};

bool contains(const Error& error, std::string_view text) {
  UNSCOPED_INFO(error.message);
  return error.message.find(text) != std::string::npos;
}

/// Answers an ADD of a key of one letter with `sum`.
void answer_add(Peer& peer, std::uint64_t sum) {
  const auto request = bytes("04") + number(2) + "/n" + number(1);
  if (peer.read(request.size()) == request) peer.write(number(sum));
}

}  // namespace

TEST_CASE("a wait whose server is killed ends at its deadline", "[store_client][reconnect]") {
  const KilledInWait server;
  auto store = StoreClient::connect(server.endpoint());
  REQUIRE(store);
  const auto started = std::chrono::steady_clock::now();
  const auto waited = store->wait("x", 200ms);
  CHECK(std::chrono::steady_clock::now() - started < 2s);
  REQUIRE_FALSE(waited);
  CHECK(waited.error().code == Errc::Timeout);
  CHECK(contains(waited.error(),
                 "wait for 'x' at " + to_string(server.endpoint()) + ": timed out after 200ms: "));
  CHECK(contains(waited.error(), "; connecting again: Connection refused"));
}

TEST_CASE("a wait whose server is killed ends when the patience for it does",
          "[store_client][reconnect]") {
  const KilledInWait server;
  const auto patience = GENERATE(0ms, 100ms);
  auto store = StoreClient::connect(server.endpoint(), {.reconnect_patience = patience});
  REQUIRE(store);
  const auto started = std::chrono::steady_clock::now();
  const auto waited = store->wait("x", 1h);
  CHECK(std::chrono::steady_clock::now() - started < 10s);
  REQUIRE_FALSE(waited);
  CHECK(waited.error().code == Errc::Unavailable);
  CHECK(contains(waited.error(),
                 "wait for 'x' at " + to_string(server.endpoint()) + ": no connection for "));
}

TEST_CASE("a wait goes on when its server comes back", "[store_client][reconnect]") {
  FakeServer server(speaking(Dialect::G, [](Peer& peer) {
    peer.read(1);
    read_keys(peer);
    if (peer.number() == 0) return;
    peer.write(bytes("00"));
    peer.stay_silent();
  }));
  auto store = StoreClient::connect(server.endpoint());
  REQUIRE(store);
  CHECK(store->wait("x", 10s));
  CHECK(server.connections() == 2);
}

TEST_CASE("an add that may have been executed is not repeated", "[store_client][reconnect]") {
  std::atomic<int> adds = 0;
  FakeServer server(speaking(Dialect::G, [&](Peer& peer) {
    if (peer.read(1) == bytes("04")) ++adds;
  }));
  auto store = StoreClient::connect(server.endpoint());
  REQUIRE(store);
  const auto added = store->add("n", 1, 10s);
  REQUIRE_FALSE(added);
  CHECK(added.error().code == Errc::Unavailable);
  CHECK(contains(added.error(), "add to 'n' at " + to_string(server.endpoint()) + ": "));
  CHECK(contains(added.error(), "the request may have been executed, so it is not repeated"));
  CHECK(adds == 1);
  CHECK(server.connections() == 1);
}

TEST_CASE("an add that was not sent yet takes a new connection", "[store_client][reconnect]") {
  std::promise<void> closed;
  FakeServer server(speaking(Dialect::G, [&](Peer& peer) {
    if (peer.number() == 0) {
      peer.close();
      return closed.set_value();
    }
    answer_add(peer, 1);
    peer.stay_silent();
  }));
  auto store = StoreClient::connect(server.endpoint());
  REQUIRE(store);
  closed.get_future().wait();
  CHECK(store->add("n", 1, 10s).value() == 1);
  CHECK(server.connections() == 2);
}

TEST_CASE("bytes that nobody asked for cost the connection, not the next answer",
          "[store_client][reconnect]") {
  std::promise<void> written;
  FakeServer server(speaking(Dialect::G, [&](Peer& peer) {
    if (peer.number() == 0) {
      peer.write(bytes("00"));
      written.set_value();
    } else {
      answer_add(peer, 7);
    }
    peer.stay_silent();
  }));
  auto store = StoreClient::connect(server.endpoint());
  REQUIRE(store);
  written.get_future().wait();
  CHECK(store->add("n", 1, 10s).value() == 7);
}

TEST_CASE("in dialect A a wait that timed out costs the connection", "[store_client][reconnect]") {
  FakeServer server(speaking(Dialect::A, [](Peer& peer) { peer.stay_silent(); }));
  auto store = StoreClient::connect(server.endpoint(), {.dialect = Dialect::A});
  REQUIRE(store);
  CHECK(store->wait("x", 50ms).error().code == Errc::Timeout);
  CHECK(server.connections() == 1);
  CHECK(store->num_keys(50ms).error().code == Errc::Timeout);
  CHECK(server.connections() == 2);
}

TEST_CASE("a cancelled wait keeps the connection", "[store_client][reconnect]") {
  FakeServer server(speaking(Dialect::C, [](Peer& peer) {
    peer.read(1);
    read_keys(peer);
    if (peer.read(1) == bytes("0c")) peer.write(bytes("01"));
    answer_add(peer, 1);
    peer.stay_silent();
  }));
  auto store = StoreClient::connect(server.endpoint(), {.dialect = Dialect::C});
  REQUIRE(store);
  CHECK(store->wait("x", 50ms).error().code == Errc::Timeout);
  CHECK(store->add("n", 1, 10s).value() == 1);
  CHECK(server.connections() == 1);
}

TEST_CASE("a release that crosses with the cancellation ends the wait well",
          "[store_client][reconnect]") {
  FakeServer server(speaking(Dialect::G, [](Peer& peer) {
    peer.read(1);
    read_keys(peer);
    if (peer.read(1) == bytes("0c")) peer.write(bytes("00 01"));
    answer_add(peer, 1);
    peer.stay_silent();
  }));
  auto store = StoreClient::connect(server.endpoint());
  REQUIRE(store);
  CHECK(store->wait("x", 50ms));
  CHECK(store->add("n", 1, 10s).value() == 1);
}

TEST_CASE("a cancellation that is answered wrongly is garbage", "[store_client][reconnect]") {
  const auto* const answer = GENERATE("02", "00 00", "00 02");
  FakeServer server(speaking(Dialect::G, [&](Peer& peer) {
    peer.read(1);
    read_keys(peer);
    if (peer.read(1) == bytes("0c")) peer.write(bytes(answer));
    peer.stay_silent();
  }));
  auto store = StoreClient::connect(server.endpoint());
  REQUIRE(store);
  CHECK(store->wait("x", 50ms).error().code == Errc::Internal);
}

TEST_CASE("a barrier that timed out says that it counted", "[store_client][reconnect]") {
  FakeServer server(speaking(Dialect::G, [](Peer& peer) {
    const auto request = bytes("12") + number(2) + "/b" + number(2) + bytes("0c");
    if (peer.read(request.size()) == request) peer.write(bytes("01"));
    peer.stay_silent();
  }));
  auto store = StoreClient::connect(server.endpoint());
  REQUIRE(store);
  const auto passed = store->barrier("b", 2, 50ms);
  REQUIRE_FALSE(passed);
  CHECK(passed.error().message == "barrier 'b' at " + to_string(server.endpoint()) +
                                      ": timed out after 50ms; the server still counts this call");
}

TEST_CASE("what only trying can tell is said, and remembered once it worked",
          "[store_client][reconnect]") {
  FakeServer server(speaking(Dialect::E, [](Peer& peer) {
    const auto opcode = peer.read(1);
    if (peer.number() > 0 && opcode == bytes("10")) {
      peer.read(number(2).size() + 2);
      peer.write(number(0));
      peer.read(1);
    }
  }));
  auto store = StoreClient::connect(server.endpoint());
  REQUIRE(store);
  CHECK(store->dialect() == ServerDialect{Dialect::D, true});
  const auto refused = store->queue_len("q", 10s);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::Unavailable);
  CHECK(contains(refused.error(), "a server that does not know QUEUE_LEN answers so"));

  CHECK(store->queue_len("q", 10s).value() == 0);
  CHECK(store->dialect() == ServerDialect{Dialect::E, true});
  const auto lost = store->queue_push("q", "", 10s);
  REQUIRE_FALSE(lost);
  CHECK(contains(lost.error(), "the connection was lost before the answer"));
}

TEST_CASE("an operation that the dialect lacks is refused without a byte",
          "[store_client][reconnect]") {
  std::string sent;
  {
    FakeServer server(speaking(Dialect::D, [&](Peer& peer) { sent = peer.stay_silent(); }));
    auto store = StoreClient::connect(server.endpoint(), {.dialect = Dialect::D});
    REQUIRE(store);
    const auto refused = store->queue_push("q", "item");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Errc::InvalidArgument);
    CHECK(refused.error().message ==
          "push to queue 'q' at " + to_string(server.endpoint()) +
              ": the server speaks dialect D (PyTorch 2.5 to 2.7), which has no "
              "QUEUE_PUSH; it came with dialect E (PyTorch 2.8 and 2.9)");
    CHECK_FALSE(store->queue_pop("q"));
    CHECK_FALSE(store->list_keys());
    CHECK_FALSE(store->barrier("b", 1));
  }
  CHECK(sent.empty());
}

TEST_CASE("a flush fails once if a write went down with its connection",
          "[store_client][reconnect]") {
  FakeServer server(speaking(Dialect::G, [](Peer& peer) {
    const auto request = bytes("01") + number(2) + "/k" + number(1) + "v";
    for (int i = 0; i < 3; ++i) peer.read(request.size());
    if (peer.number() == 0) return;
    peer.read(1);
    peer.write(peer.read(4));
    peer.stay_silent();
  }));
  auto store = StoreClient::connect(server.endpoint());
  REQUIRE(store);
  for (int i = 0; i < 3; ++i) REQUIRE(store->set("k", "v"));
  const auto flushed = store->flush(10s);
  REQUIRE_FALSE(flushed);
  CHECK(flushed.error().code == Errc::Unavailable);
  CHECK(contains(flushed.error(), "flush at " + to_string(server.endpoint()) +
                                      ": set 'k' and 2 later writes may not have been executed: "));
  for (int i = 0; i < 3; ++i) REQUIRE(store->set("k", "v"));
  CHECK(store->flush(10s));
}

TEST_CASE("a flush after an answer sends nothing", "[store_client][reconnect]") {
  std::string more;
  {
    FakeServer server(speaking(Dialect::G, [&](Peer& peer) {
      peer.read((bytes("01") + number(2) + "/k" + number(1) + "v").size());
      answer_add(peer, 1);
      more = peer.stay_silent();
    }));
    auto store = StoreClient::connect(server.endpoint());
    REQUIRE(store);
    REQUIRE(store->set("k", "v"));
    REQUIRE(store->add("n", 1));
    CHECK(store->flush(1s));
  }
  CHECK(more.empty());
}

TEST_CASE("where there is no ping a flush counts keys", "[store_client][reconnect]") {
  FakeServer server(speaking(Dialect::A, [](Peer& peer) {
    peer.read((bytes("00") + number(2) + "/k" + number(1) + "v").size());
    if (peer.read(1) == bytes("06")) peer.write(number(1));
    peer.stay_silent();
  }));
  auto store = StoreClient::connect(server.endpoint(), {.dialect = Dialect::A});
  REQUIRE(store);
  REQUIRE(store->set("k", "v"));
  CHECK(store->flush(10s));
}

TEST_CASE("a pop that lost the race waits again", "[store_client][reconnect]") {
  FakeServer server(speaking(Dialect::E, [](Peer& peer) {
    const auto pop = bytes("0f") + number(2) + "/q";
    for (const int length : {0, 0, 1}) {
      if (peer.read(pop.size()) != pop) return;
      peer.write(number(static_cast<std::uint64_t>(length)));
      if (length == 1) break;
      if (peer.read(1) != bytes("06")) return;
      read_keys(peer);
      peer.write(bytes("00"));
    }
    peer.write(number(4) + "item");
    peer.stay_silent();
  }));
  auto store = StoreClient::connect(server.endpoint());
  REQUIRE(store);
  CHECK(store->queue_pop("q", 10s).value() == "item");
}

TEST_CASE("a client can be moved, and its views with it", "[store_client][reconnect]") {
  FakeServer server(speaking(Dialect::G, [](Peer& peer) {
    const auto request = bytes("04") + number(6) + "/a/b/n" + number(1);
    if (peer.read(request.size()) == request) peer.write(number(1));
    peer.stay_silent();
  }));
  auto store = StoreClient::connect(server.endpoint());
  REQUIRE(store);
  auto view = store->under("a").under("b");
  const auto moved = std::move(*store);
  CHECK(view.add("n", 1, 10s).value() == 1);
}

TEST_CASE("keys that can't be printed are escaped and cut in errors", "[store_client][reconnect]") {
  FakeServer server(speaking(Dialect::A, [](Peer& peer) { peer.stay_silent(); }));
  auto store = StoreClient::connect(server.endpoint(), {.dialect = Dialect::A});
  REQUIRE(store);
  CHECK(contains(store->wait(std::string("a\0\xFF\n", 4), 0s).error(),
                 "wait for 'a\\x00\\xff\\x0a' at "));
  CHECK(contains(store->wait(std::string(100, 'k'), 0s).error(),
                 "wait for '" + std::string(80, 'k') + "...' at "));
}

}  // namespace muster::store_client

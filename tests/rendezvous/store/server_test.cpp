#include "rendezvous/store/server.hpp"

#include "tests/rendezvous/store/store_host.hpp"
#include "tests/rendezvous/store/wire.hpp"

#include <algorithm>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>

using muster::store::Dialect;
using muster::store::ServerOptions;

namespace {

/// A client of dialect D or later, connected and answered.
class Client : public RawClient {
 public:
  explicit Client(StoreHost& host, const Options& options = {}) : RawClient(host.port(), options) {
    REQUIRE(send(kValidate));
    pass_fence();
  }

  /// Until the server has done what this connection asked before, and sent what followed for
  /// others.
  void pass_fence() {
    for (std::uint32_t turn = 1; turn <= 2; ++turn) {
      REQUIRE(send(wire(kv::Ping{turn})));
      REQUIRE(receive(4) == wire_number(turn).substr(0, 4));
    }
  }
};

ServerOptions with_limits(muster::store::Limits limits) { return {.limits = limits}; }

}  // namespace

TEST_CASE("a request may come in pieces, and others are served meanwhile", "[store][server]") {
  StoreHost host;
  Client slow(host);
  Client other(host);
  const std::string set = wire(kv::Set{"k", "value"});
  REQUIRE(slow.send(set.substr(0, set.size() - 2)));
  REQUIRE(other.send(wire(kv::Get{"k"})));
  CHECK(other.receive(8) == wire_value(""));
  REQUIRE(slow.send(set.substr(set.size() - 2) + wire(kv::Get{"k"})));
  CHECK(slow.receive(13) == wire_value("value"));
}

TEST_CASE("half a request is given a bounded time, counted from its first byte",
          "[store][server]") {
  StoreHost host(with_limits({.partial_request = std::chrono::milliseconds(200)}));
  RawClient half(host.port());
  RawClient silent(host.port());
  Client quiet(host);
  REQUIRE(half.send(std::string("\2\5", 2)));
  CHECK(half.is_closed_by_peer());
  CHECK(host.log_with("did not come to its end").find("peer=127.0.0.1:") != std::string::npos);
  quiet.pass_fence();
  CHECK(silent.is_quiet());
}

TEST_CASE("a length beyond its limit closes the connection, and takes no memory",
          "[store][server]") {
  StoreHost host;
  Client watcher(host);
  const std::string absurd = wire_number(std::uint64_t{1} << 63);
  const std::string keys = wire_number(131'073);
  for (const auto& request : {"\1" + absurd,                            // SET, its key
                              "\1" + wire_value("k") + absurd,          // its value
                              "\4" + absurd,                            // ADD
                              "\6" + keys, "\5" + keys, "\x0a" + keys,  // lists
                              "\x0b" + keys,                            // MULTI_SET
                              "\x0b" + wire_number(1) + absurd,         // its first key
                              "\1" + wire_number(8193),                 // one more than is allowed
                              "\1" + wire_value("k") + wire_number(8'388'609)}) {
    Client client(host);
    REQUIRE(client.send(request));
    CHECK(client.is_closed_by_peer());
    CHECK(host.log_with("the limit is").find("warning store closed a connection peer=127.0.0.1:") !=
          std::string::npos);
  }
  watcher.pass_fence();
  CHECK(host.stats().buffered_bytes == 0);
  CHECK(host.stats().connections == 1);
  CHECK(host.stats().refused == 10);
}

TEST_CASE("what is exactly as long as it may be is stored", "[store][server]") {
  StoreHost host;
  Client client(host);
  const std::string key(8192, 'k');
  const std::string value(8 * 1024 * 1024, 'v');
  REQUIRE(client.send(wire(kv::Set{key, value}) + wire(kv::Get{key})));
  CHECK(client.receive(8 + value.size()) == wire_value(value));
  const std::vector<std::string_view> keys(131'072, key);
  REQUIRE(client.send(wire(kv::Check{std::vector<std::string_view>(131'072, "")})));
  CHECK(client.receive(1) == std::string(1, '\1'));
  CHECK(host.log().empty());
}

TEST_CASE("a client that speaks no known dialect is closed and shown, with what to do",
          "[store][server]") {
  StoreHost host;
  const std::pair<std::string, std::string> strangers[] = {
      {"GET / HTTP/1.0\r\n\r\n", "bytes=\"47 45 54 20 2f 20 48 54 54 50 2f 31 2e 30 0d 0a 0d 0a\""},
      {std::string("\x16\x03\x01\x02\x00\x01", 6), "bytes=\"16 03 01 02 00 01\""},
      {"SSH-2.0-OpenSSH_9.2\r\n", "bytes=\"53 53 48"},
      {std::string("\x00\xde\xad\xbe\xef", 5), "bytes=\"00 de ad be ef\""},
      {kValidate + "\x40", "opcode 0x40 is unknown"},
  };
  for (const auto& [bytes, shown] : strangers) {
    INFO(shown);
    RawClient stranger(host.port());
    REQUIRE(stranger.send(bytes));
    CHECK(stranger.is_closed_by_peer());
    const std::string log = host.log_with("--worker-store torch lets rank 0 host the store");
    CHECK(log.find(shown) != std::string::npos);
    CHECK(log.find("warning") == 0);
    CHECK(log.find("peer=127.0.0.1:") != std::string::npos);
    CHECK(std::count(log.begin(), log.end(), '\n') == 1);
  }
}

TEST_CASE("a flood of strangers is logged up to a bound", "[store][server]") {
  StoreHost host;
  for (int count = 0; count < 60; ++count) {
    RawClient stranger(host.port());
    REQUIRE(stranger.send("\xff"));
    CHECK(stranger.is_closed_by_peer());
  }
  const std::string log = host.log();
  CHECK(std::count(log.begin(), log.end(), '\n') == 30);
  CHECK(host.stats().refused == 60);
}

TEST_CASE("clients without VALIDATE can be turned away", "[store][server]") {
  StoreHost host({.limits = {}, .dialect = {}, .refuse_unvalidated = true});
  RawClient old(host.port());
  REQUIRE(old.send(wire(kv::CountKeys{}, Dialect::A)));
  CHECK(old.is_closed_by_peer());
  CHECK(host.log_with("VALIDATE").find("warning") == 0);
  Client current(host);
}

TEST_CASE("a new command of a client of A ends its pending wait, from its first byte on",
          "[store][server]") {
  StoreHost host;
  RawClient old(host.port());
  Client other(host);
  REQUIRE(old.send(wire_wait({"late"}, Dialect::A)));
  other.pass_fence();
  CHECK(host.waiters().size() == 1);
  const std::string count = wire(kv::CountKeys{}, Dialect::A);
  const std::string get = wire(kv::Get{"late"}, Dialect::A);
  REQUIRE(old.send(get.substr(0, 1)));
  other.pass_fence();
  CHECK(host.waiters().empty());
  REQUIRE(other.send(wire(kv::Set{"late", "v"})));
  other.pass_fence();
  CHECK(old.is_quiet());
  REQUIRE(old.send(get.substr(1) + count));
  CHECK(old.receive(17) == wire_value("v") + wire_number(1));
}

TEST_CASE("from B on a new command leaves a pending wait alone", "[store][server]") {
  StoreHost host;
  Client client(host);
  REQUIRE(client.send(wire_wait({"late"}) + wire(kv::CountKeys{}) + wire(kv::Add{"late", 4})));
  CHECK(client.receive(8) == wire_number(0));
  CHECK(client.receive(9) == kStop + wire_number(4));
}

TEST_CASE("opcode 8 deletes for a client of A, and appends for one of B", "[store][server]") {
  StoreHost host;
  Client setter(host);
  REQUIRE(setter.send(wire(kv::Set{"k", "v"})));
  setter.pass_fence();

  RawClient b(host.port());
  REQUIRE(b.send(wire(kv::Append{"k", "w"}, Dialect::B) + wire(kv::Get{"k"}, Dialect::B)));
  CHECK(b.receive(10) == wire_value("vw"));

  // A sends the opcode first, alone.
  RawClient a(host.port());
  const std::string remove = wire(kv::Delete{"k"}, Dialect::A);
  REQUIRE(a.send(remove.substr(0, 1)));
  REQUIRE(a.send(remove.substr(1)));
  CHECK(a.receive(8) == wire_number(1));
  // Now it is known for A: what follows a key is the next command, at once.
  REQUIRE(a.send(remove + wire(kv::CountKeys{}, Dialect::A)));
  CHECK(a.receive(16) == wire_number(0) + wire_number(0));
}

TEST_CASE("a long key of B that comes before its value is no deletion", "[store][server]") {
  StoreHost host;
  const std::string key(2000, 'k');
  const std::string append = wire(kv::Append{key, "tail"}, Dialect::B);
  RawClient b(host.port());
  REQUIRE(b.send(append.substr(0, 2009)));
  REQUIRE(b.send(append.substr(2009) + wire(kv::Get{key}, Dialect::B)));
  CHECK(b.receive(12) == wire_value("tail"));
}

TEST_CASE("what a client sent before it left is executed", "[store][server]") {
  StoreHost host;
  Client reader(host);
  {
    Client writer(host);
    REQUIRE(writer.send(wire(kv::Set{"a", "1"}) + wire(kv::Set{"b", "2"})));
  }
  REQUIRE(reader.send(wire_wait({"a", "b"})));
  CHECK(reader.receive(1) == kStop);

  RawClient old(host.port());
  REQUIRE(old.send(wire(kv::Set{"c", "3"}, Dialect::A) + wire(kv::Delete{"a"}, Dialect::A)));
  old.finish_sending();
  CHECK(old.receive(8) == wire_number(1));
  CHECK(old.is_closed_by_peer());
}

TEST_CASE("what was asked before a mistake is answered, then the connection closes",
          "[store][server]") {
  constexpr std::size_t kReply = 8 + 64 * 1024;
  constexpr int kRequests = 150;  // More than the kernel takes for a client with such a buffer.
  StoreHost host(with_limits({.unsent_bytes = 64 * 1024 * 1024}));
  RawClient hasty(host.port(), {.receive_buffer = 4096});
  std::string talk = kValidate + wire(kv::Set{"k", std::string(64 * 1024, 'v')});
  for (int count = 0; count < kRequests; ++count) talk += wire(kv::Get{"k"});
  REQUIRE(hasty.send(talk + "\x40"));
  CHECK(host.log_with("opcode 0x40 is unknown").find("warning") == 0);
  CHECK(host.stats().buffered_bytes > kReply);
  // Neither what it sends now nor what was on its way costs it the replies.
  REQUIRE(hasty.send(std::string(256 * 1024, 'x')));
  int replies = 0;
  while (replies < kRequests && hasty.receive(kReply).size() == kReply) ++replies;
  CHECK(replies == kRequests);
  CHECK(hasty.is_closed_by_peer());
  CHECK(host.stats().buffered_bytes == 0);
  CHECK(host.stats().refused == 1);
}

TEST_CASE("a refused client that does not take its replies is given a bounded time",
          "[store][server]") {
  StoreHost host(
      with_limits({.unsent_bytes = 64 * 1024 * 1024, .farewell = std::chrono::milliseconds(200)}));
  Client other(host);
  RawClient deaf(host.port(), {.receive_buffer = 4096});
  std::string talk = kValidate + wire(kv::Set{"k", std::string(64 * 1024, 'v')});
  for (int count = 0; count < 150; ++count) talk += wire(kv::Get{"k"});
  REQUIRE(deaf.send(talk + "\x40"));
  CHECK(host.log_with("opcode 0x40 is unknown").find("warning") == 0);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (host.stats().connections > 1 && std::chrono::steady_clock::now() < deadline) {
    other.pass_fence();
  }
  CHECK(host.stats().connections == 1);
  CHECK(host.stats().buffered_bytes == 0);
}

TEST_CASE("a client that resets the connection leaves no wait behind", "[store][server]") {
  StoreHost host;
  Client waiter(host);
  Client other(host);
  REQUIRE(waiter.send(wire_wait({"k"}) + wire(kv::Barrier{"b", 3})));
  waiter.pass_fence();
  REQUIRE(host.waiters().size() == 1);
  waiter.reset();
  REQUIRE(other.send(wire(kv::Set{"k", ""}) + wire(kv::Set{"b", ""})));
  other.pass_fence();
  CHECK(host.waiters().empty());
  CHECK(host.stats().connections == 1);
}

TEST_CASE("it is known who waits for what", "[store][server]") {
  StoreHost host;
  Client waiter(host);
  const auto before = std::chrono::steady_clock::now();
  REQUIRE(waiter.send(wire(kv::Set{"there", ""}) + wire_wait({"there", "x", "y"})));
  waiter.pass_fence();
  const auto waiters = host.waiters();
  REQUIRE(waiters.size() == 1);
  CHECK(waiters[0].client.host == "127.0.0.1");
  CHECK(waiters[0].client.port == ntohs([&] {
          sockaddr_in own{};
          socklen_t size = sizeof own;
          ::getsockname(waiter.descriptor(), reinterpret_cast<sockaddr*>(&own), &size);
          return own.sin_port;
        }()));
  CHECK(waiters[0].keys == std::vector<std::string>{"x", "y"});
  CHECK(waiters[0].since >= before);
}

TEST_CASE("an accepted connection sends at once, is watched, and is not inherited",
          "[store][server]") {
  StoreHost host;
  Client client(host);
  // The host lives in this process: its end of the connection is one of our descriptors.
  sockaddr_in own{};
  socklen_t size = sizeof own;
  REQUIRE(::getsockname(client.descriptor(), reinterpret_cast<sockaddr*>(&own), &size) == 0);
  int served = -1;
  for (int fd = 0; fd < 256; ++fd) {
    sockaddr_in peer{};
    size = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
        peer.sin_port == own.sin_port) {
      served = fd;
    }
  }
  REQUIRE(served >= 0);
  const auto option = [served](int level, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    REQUIRE(::getsockopt(served, level, name, &value, &length) == 0);
    return value;
  };
  CHECK(option(IPPROTO_TCP, TCP_NODELAY) == 1);
  CHECK(option(SOL_SOCKET, SO_KEEPALIVE) == 1);
  CHECK(option(IPPROTO_TCP, TCP_KEEPIDLE) == 60);
  CHECK((::fcntl(served, F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a server that ends closes every connection", "[store][server]") {
  auto host = std::make_unique<StoreHost>();
  Client client(*host);
  RawClient silent(host->port());
  REQUIRE(client.send(wire_wait({"k"})));
  client.pass_fence();
  host.reset();
  CHECK(client.is_closed_by_peer());
  CHECK(silent.is_closed_by_peer());
}

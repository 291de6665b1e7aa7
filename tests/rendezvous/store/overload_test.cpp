#include "base/posix/limits.hpp"
#include "tests/rendezvous/store/store_host.hpp"
#include "tests/rendezvous/store/wire.hpp"

#include <fcntl.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>

using muster::store::Limits;

namespace {

bool answers_ping(RawClient& client) {
  return client.send("\x0dping") && client.receive(4) == "ping";
}

bool answers(RawClient& new_client) {
  return new_client.send(kValidate) && answers_ping(new_client);
}

/// No descriptor can be opened beyond the lowest that is free now.
class OpenFileLimit {
 public:
  OpenFileLimit() {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const int lowest_free = ::fcntl(0, F_DUPFD_CLOEXEC, 0);
    REQUIRE(lowest_free >= 0);
    ::close(lowest_free);
    rlimit tight = before_;
    tight.rlim_cur = static_cast<rlim_t>(lowest_free);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &tight) == 0);
  }
  ~OpenFileLimit() { lift(); }
  void lift() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("a client that never reads is bounded, and costs only itself", "[store][server]") {
  constexpr std::size_t kReply = 8 + 64 * 1024;
  constexpr int kRequests = 1000;
  StoreHost host({.limits = {.unsent_bytes = 256 * 1024}});
  RawClient greedy(host.port(), {.receive_buffer = 4096});
  RawClient other(host.port());
  REQUIRE(greedy.send(kValidate + wire(kv::Set{"k", std::string(64 * 1024, 'v')})));
  std::string gets;
  for (int count = 0; count < kRequests; ++count) gets += wire(kv::Get{"k"});
  REQUIRE(greedy.send(gets));

  // 65 MB are asked for. The other is answered, and no more is kept than the limit and one reply.
  REQUIRE(answers(other));
  const auto held = host.stats().buffered_bytes;
  CHECK(held > 0);
  CHECK(held < 1024 * 1024);

  // It is not closed for that: all comes when it reads.
  std::size_t got = 0;
  for (int count = 0; count < kRequests; ++count) got += greedy.receive(kReply).size();
  CHECK(got == kRequests * kReply);
  CHECK(answers_ping(other));
  CHECK(host.stats().buffered_bytes == 0);
}

TEST_CASE("one address can't take all the connections", "[store][server]") {
  StoreHost host({.limits = {.connections = 100, .connections_per_address = 8}});
  std::vector<std::unique_ptr<RawClient>> silent;
  silent.reserve(8);
  for (int count = 0; count < 8; ++count)
    silent.push_back(std::make_unique<RawClient>(host.port()));
  RawClient ninth(host.port());
  CHECK(ninth.is_closed_by_peer());
  CHECK(host.log_with("the limit of connections from one address is reached: 8")
            .find("peer=127.0.0.1:") != std::string::npos);
  RawClient neighbour(host.port(), {.from = "127.0.0.2"});
  CHECK(answers(neighbour));
  CHECK(answers(*silent[0]));
  silent.pop_back();
  // Its end is noticed in its own time.
  RawClient next(host.port());
  while (!answers(next)) next = RawClient(host.port());
}

TEST_CASE("no more than the limit of all connections are open", "[store][server]") {
  StoreHost host({.limits = {.connections = 3}});
  RawClient first(host.port());
  RawClient second(host.port());
  RawClient third(host.port());
  RawClient fourth(host.port());
  CHECK(fourth.is_closed_by_peer());
  CHECK(host.log_with("the limit of all connections is reached: 3").find("warning") == 0);
  CHECK(answers(first));
}

TEST_CASE("out of descriptors, connections wait in the queue until there are some",
          "[store][server]") {
  StoreHost host;
  auto open = std::make_unique<RawClient>(host.port());
  RawClient other(host.port());
  REQUIRE(answers(*open));
  REQUIRE(answers(other));
  std::vector<RawClient> waiting;
  waiting.reserve(3);
  for (int count = 0; count < 3; ++count) waiting.emplace_back(RawClient::Options{});

  OpenFileLimit limit;
  for (auto& client : waiting) client.connect(host.port());
  const std::string log = host.log_with("can't accept connections");
  CHECK(log.find("warning") == 0);
  CHECK(log.find("reason=\"Too many open files\" open=2") != std::string::npos);
  CHECK(answers_ping(other));

  // One that closes frees two descriptors here, its own and the server's.
  open.reset();
  CHECK(answers(waiting[0]));
  CHECK(answers(waiting[1]));
  CHECK(answers_ping(other));
  CHECK(host.log().empty());

  // Now nothing closes; a timer looks again.
  limit.lift();
  CHECK(answers(waiting[2]));
  CHECK(host.log_with("accepts connections again").find("info") == 0);
}

TEST_CASE("memory for unfinished requests is bounded over all connections", "[store][server]") {
  StoreHost host({.limits = {.buffered_bytes = 1024 * 1024}});
  RawClient first(host.port());
  RawClient second(host.port());
  const std::string half = kValidate + "\1" + wire_value("k") + wire_number(8 * 1024 * 1024) +
                           std::string(600 * 1024, 'v');
  REQUIRE(first.send(half));
  static_cast<void>(second.send(half));
  const std::string log = host.log_with("of all connections together");
  CHECK(log.find("exceed the limit of 1048576 bytes") != std::string::npos);
  CHECK(host.stats().buffered_bytes <= 1024 * 1024);
}

TEST_CASE("a reply that would be too long is refused before it is built", "[store][server]") {
  StoreHost host({.limits = {.reply_bytes = 1024 * 1024}});
  RawClient client(host.port());
  const std::vector<std::string_view> keys(3, "k");
  REQUIRE(client.send(kValidate + wire(kv::Set{"k", std::string(400 * 1024, 'v')}) +
                      wire(kv::MultiGet{keys})));
  CHECK(client.is_closed_by_peer());
  CHECK(
      host.log_with("its reply would be longer than the limit of 1048576 bytes").find("warning") ==
      0);
}

TEST_CASE("a full store refuses by closing, and says why", "[store][server]") {
  StoreHost host({.limits = {.stored_bytes = 100 * 1024}});
  RawClient greedy(host.port());
  RawClient other(host.port());
  REQUIRE(answers(other));
  REQUIRE(greedy.send(kValidate + wire(kv::Set{"k", std::string(200 * 1024, 'v')})));
  CHECK(greedy.is_closed_by_peer());
  CHECK(host.log_with("SET of 'k': the store is full, its limit is 102400 bytes").find("warning") ==
        0);
  REQUIRE(other.send(wire(kv::Set{"small", "v"}) + wire(kv::CountKeys{})));
  CHECK(other.receive(8) == wire_number(1));
}

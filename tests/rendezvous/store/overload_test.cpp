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

/// The most that this process has had in memory at one time.
long peak_memory_kib() {
  rusage usage{};
  REQUIRE(::getrusage(RUSAGE_SELF, &usage) == 0);
  return usage.ru_maxrss;
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

TEST_CASE("a client that asks for much and leaves has its turns only", "[store][server]") {
  constexpr std::uint64_t kRequests = 5000;
  StoreHost host;
  RawClient other(host.port());
  REQUIRE(answers(other));
  {
    RawClient greedy(host.port());
    std::string gets;
    for (std::uint64_t count = 0; count < kRequests; ++count) gets += wire(kv::Get{"k"});
    REQUIRE(greedy.send(kValidate + wire(kv::Set{"k", std::string(64 * 1024, 'v')})));
    REQUIRE(answers_ping(greedy));
    REQUIRE(greedy.send(gets));
  }
  // 320 MB are asked for, and nobody is left whom a full buffer could hold up.
  REQUIRE(answers_ping(other));
  CHECK(host.stats().operations < kRequests);
  while (host.stats().operations < kRequests) REQUIRE(answers_ping(other));
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
  constexpr std::size_t kLimit = 4 * 1024 * 1024;
  StoreHost host({.limits = {.buffered_bytes = kLimit}});
  const std::string set = kValidate + wire(kv::Set{"k", std::string(1100 * 1024, 'v')});
  constexpr std::size_t kSent = 1024 * 1024;
  RawClient first(host.port());
  REQUIRE(first.send(set.substr(0, kSent)));
  while (host.stats().buffered_bytes < kSent) {
  }
  // Each takes at least a quarter of what there is.
  std::vector<RawClient> others;
  others.reserve(4);
  for (int count = 0; count < 4; ++count) {
    static_cast<void>(others.emplace_back(host.port()).send(set.substr(0, kSent)));
  }
  CHECK(host.log_with("of all connections together, would exceed the limit of 4194304 bytes")
            .find("warning") == 0);
  CHECK(host.stats().buffered_bytes <= kLimit);
  REQUIRE(first.send(set.substr(kSent) + wire(kv::CountKeys{})));
  CHECK(first.receive(8) == wire_number(1));
}

TEST_CASE(
    "replies that nobody takes are bounded over all connections, and cost only those that ask",
    "[store][server]") {
  constexpr std::size_t kLimit = 4 * 1024 * 1024;
  constexpr std::size_t kReply = 8 + 64 * 1024;
  constexpr int kRequests = 200;
  StoreHost host({.limits = {.buffered_bytes = kLimit}});
  RawClient other(host.port());
  REQUIRE(other.send(kValidate + wire(kv::Set{"k", std::string(64 * 1024, 'v')})));
  REQUIRE(answers_ping(other));
  std::string gets = kValidate;
  for (int count = 0; count < kRequests; ++count) gets += wire(kv::Get{"k"});
  // Each holds a megabyte and more: not all of them can.
  std::vector<std::unique_ptr<RawClient>> greedy;
  greedy.reserve(6);
  for (int count = 0; count < 6; ++count) {
    greedy.push_back(
        std::make_unique<RawClient>(host.port(), RawClient::Options{.receive_buffer = 4096}));
    static_cast<void>(greedy.back()->send(gets));
  }
  CHECK(host.log_with("would exceed the limit of 4194304 bytes").find("warning") == 0);
  CHECK(host.stats().buffered_bytes <= kLimit);
  REQUIRE(other.send(wire(kv::Get{"k"})));
  CHECK(other.receive(kReply).size() == kReply);

  std::size_t served = 0;
  for (const auto& client : greedy) {
    int replies = 0;
    while (replies < kRequests && client->receive(kReply).size() == kReply) ++replies;
    if (replies == kRequests) ++served;
  }
  CHECK(served >= 1);  // The last one has the room for itself.
  CHECK(served + host.stats().refused == greedy.size());
}

TEST_CASE("a reply for which all buffers have no room is refused before it is built",
          "[store][server]") {
  constexpr std::size_t kValue = 8 * 1024 * 1024;
  constexpr long kTakenAtMostKiB = 200 * 1024;  // Of the 800 MiB that are asked for.
  StoreHost host({.limits = {.buffered_bytes = 4 * kValue}});
  RawClient client(host.port());
  RawClient other(host.port());
  const std::vector<std::string_view> keys(100, "k");
  REQUIRE(client.send(kValidate + wire(kv::Set{"k", std::string(kValue, 'v')})));
  REQUIRE(answers_ping(client));
  const long before = peak_memory_kib();
  REQUIRE(client.send(wire(kv::MultiGet{keys})));
  CHECK(client.is_closed_by_peer());
  CHECK(host.log_with("would exceed the limit of 33554432 bytes").find("warning") == 0);
  CHECK(peak_memory_kib() - before < kTakenAtMostKiB);

  // One for which there is room is sent, whether it waits in the buffers or not.
  REQUIRE(other.send(kValidate + wire(kv::Get{"k"})));
  CHECK(other.receive(8 + kValue) == wire_value(std::string(kValue, 'v')));
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

// The client against our own server.

#include "rendezvous/store_client/store_client.hpp"
#include "tests/rendezvous/store/store_host.hpp"
#include "tests/rendezvous/store_client/every_operation.hpp"

#include <future>
#include <set>

#include <catch2/catch.hpp>

using namespace std::chrono_literals;

namespace muster::store_client {
namespace {

/// Also for threads, where Catch2's REQUIRE must not be: errors become exceptions, which futures
/// carry.
StoreClient client_of(const StoreHost& host) {
  return StoreClient::connect({"127.0.0.1", host.port()}, {.timeout = 20s, .call_timeout = 20s})
      .value();
}

}  // namespace

TEST_CASE("every operation works against our server", "[store_client][server]") {
  StoreHost host;
  use_every_operation({{"127.0.0.1", host.port()}, Dialect::G, true});
}

TEST_CASE("every operation works against our server in every dialect, or is refused",
          "[store_client][server]") {
  const auto [ours, theirs] =
      GENERATE(table<Dialect, store::Dialect>({{Dialect::A, store::Dialect::A},
                                               {Dialect::B, store::Dialect::B},
                                               {Dialect::C, store::Dialect::C},
                                               {Dialect::D, store::Dialect::D},
                                               {Dialect::E, store::Dialect::E},
                                               {Dialect::F, store::Dialect::F},
                                               {Dialect::G, store::Dialect::G}}));
  INFO(to_string(ours));
  StoreHost host({.limits = {}, .dialect = theirs});
  use_every_operation({{"127.0.0.1", host.port()}, ours, ours >= Dialect::E});
}

TEST_CASE("what one client sets wakes another", "[store_client][server]") {
  StoreHost host;
  auto waiting = std::async(std::launch::async, [&] { return client_of(host).get("late"); });
  auto store = client_of(host);
  REQUIRE(store.set("late", "here"));
  REQUIRE(store.flush());
  CHECK(waiting.get().value() == "here");
}

TEST_CASE("an item goes to one of two that wait for it", "[store_client][server]") {
  StoreHost host;
  const auto pop = [&] { return client_of(host).queue_pop("q"); };
  auto first = std::async(std::launch::async, pop);
  auto second = std::async(std::launch::async, pop);
  auto store = client_of(host);
  REQUIRE(store.queue_push("q", "a"));
  REQUIRE(store.queue_push("q", "b"));
  CHECK(std::set{first.get().value(), second.get().value()} == std::set<std::string>{"a", "b"});
}

TEST_CASE("clients leave a barrier together, whichever kind it is", "[store_client][server]") {
  constexpr int kClients = 8;
  const auto below_prefix = GENERATE(false, true);
  StoreHost host;
  std::vector<std::future<std::int64_t>> seen;
  seen.reserve(kClients);
  for (int i = 0; i < kClients; ++i) {
    seen.push_back(std::async(std::launch::async, [&] {
      auto store = client_of(host);
      store.add("came", 1).value();
      const auto passed =
          below_prefix ? store.under("p").barrier("b", kClients) : store.barrier("b", kClients);
      return passed ? store.add("came", 0).value() : -1;
    }));
  }
  for (auto& each : seen) CHECK(each.get() == kClients);
}

TEST_CASE("a wait ends in time when our server goes away", "[store_client][server]") {
  auto host = std::make_unique<StoreHost>();
  auto store = StoreClient::connect({"127.0.0.1", host->port()}, {.reconnect_patience = 100ms});
  REQUIRE(store);
  auto waiting = std::async(std::launch::async, [&] { return store->wait("x", 1h); });
  while (host->waiters().empty()) std::this_thread::yield();
  host.reset();
  REQUIRE(waiting.wait_for(10s) == std::future_status::ready);
  const auto waited = waiting.get();
  REQUIRE_FALSE(waited);
  CHECK(waited.error().code == Errc::Unavailable);
  CHECK(waited.error().message.starts_with("wait for 'x' at 127.0.0.1:"));
}

}  // namespace muster::store_client

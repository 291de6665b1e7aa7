#include "tests/rendezvous/store_client/every_operation.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

using namespace std::chrono_literals;

namespace muster::store_client {
namespace {

using Strings = std::vector<std::string>;

/// What a timed-out wait takes here: it must pass, so it is short.
constexpr auto kInVain = 50ms;

void use_values(StoreClient& store) {
  const std::string binary("a\0b\xFF/", 5);
  REQUIRE(store.set("ops/k1", binary));
  CHECK(store.get("ops/k1").value() == binary);
  REQUIRE(store.set("ops/empty", ""));
  CHECK(store.get("ops/empty").value().empty());
  const std::string large(3 << 20, 'x');
  REQUIRE(store.set("ops/large", large));
  CHECK(store.get("ops/large").value() == large);
  REQUIRE(store.flush());

  CHECK(store.check("ops/k1").value());
  CHECK_FALSE(store.check(Strings{"ops/k1", "ops/none"}).value());
  CHECK(store.wait(Strings{"ops/k1", "ops/empty"}));
  CHECK(store.wait(Strings{}));

  CHECK(store.delete_key("ops/k1").value());
  CHECK_FALSE(store.delete_key("ops/k1").value());
}

void use_numbers(StoreClient& store) {
  const auto before = store.num_keys().value();
  CHECK(store.add("ops/sum", 5).value() == 5);
  CHECK(store.add("ops/sum", -7).value() == -2);
  CHECK(store.get("ops/sum").value() == "-2");
  CHECK(store.num_keys().value() == before + 1);

  CHECK(store.compare_set("ops/cs", "", "first").value() == "first");
  CHECK(store.compare_set("ops/cs", "first", "second").value() == "second");
  CHECK(store.compare_set("ops/cs", "wrong", "third").value() == "second");
  CHECK(store.compare_set("ops/missing", "expected", "x").value() == "expected");
}

void use_waits(StoreClient& store) {
  const auto waited = store.wait("ops/never", kInVain);
  REQUIRE_FALSE(waited);
  CHECK(waited.error().code == Errc::Timeout);
  CHECK(waited.error().message ==
        "wait for 'ops/never' at " + to_string(store.endpoint()) + ": timed out after 50ms");
  CHECK_FALSE(store.wait("ops/never", 0s));
  // A stray answer to the waits that were given up would shift this one.
  REQUIRE(store.set("ops/never", "now"));
  CHECK(store.add("ops/after", 1).value() == 1);
  CHECK(store.get("ops/never").value() == "now");
}

void use_lists(StoreClient& store, Dialect dialect) {
  if (dialect == Dialect::A) {
    for (const auto& refused :
         {store.append("ops/a", "x").error(), store.multi_get(Strings{"ops/a"}).error(),
          store.multi_set({}).error()}) {
      CHECK(refused.code == Errc::InvalidArgument);
      CHECK(refused.message.find("speaks dialect A (PyTorch 1.13 and 2.0), which has no ") !=
            std::string::npos);
    }
    return;
  }
  REQUIRE(store.append("ops/a", "ab"));
  REQUIRE(store.append("ops/a", "cd"));
  CHECK(store.get("ops/a").value() == "abcd");
  const std::vector<std::pair<std::string, std::string>> entries{{"ops/m1", "A"}, {"ops/m2", "BB"}};
  REQUIRE(store.multi_set(entries));
  CHECK(store.multi_get(Strings{"ops/m2", "ops/m1"}).value() == Strings{"BB", "A"});
  CHECK(store.multi_get(Strings{"ops/m1", "ops/no"}, kInVain).error().code == Errc::Timeout);
}

/// A server that lacks what it might have closes the connection: the error says what that means,
/// and the next call works.
void check_not_known(StoreClient& store, const Error& error, std::string_view operation) {
  INFO(error.message);
  if (opcode({store.dialect().dialect, true}, Operation::Barrier)) {
    CHECK(error.code == Errc::Unavailable);
    CHECK(error.message.find("does not know " + std::string(operation)) != std::string::npos);
  } else {
    CHECK(error.code == Errc::InvalidArgument);
    CHECK(error.message.find("has no " + std::string(operation)) != std::string::npos);
  }
  CHECK(store.num_keys());
}

void use_queues(StoreClient& store, bool has_queues) {
  if (!has_queues) {
    const auto pushed = store.queue_push("ops/q", "item");
    REQUIRE_FALSE(pushed);
    const auto popped = store.queue_pop("ops/q");
    REQUIRE_FALSE(popped);
    const auto measured = store.queue_len("ops/q");
    REQUIRE_FALSE(measured);
    if (store.dialect().or_later) {
      check_not_known(store, pushed.error(), "QUEUE_PUSH");
      check_not_known(store, popped.error(), "QUEUE_POP");
      check_not_known(store, measured.error(), "QUEUE_LEN");
    } else {
      CHECK(pushed.error().code == Errc::InvalidArgument);
    }
    return;
  }
  CHECK(store.queue_len("ops/q").value() == 0);
  CHECK(store.queue_try_pop("ops/q").value() == std::nullopt);
  REQUIRE(store.queue_push("ops/q", "one"));
  REQUIRE(store.queue_push("ops/q", ""));
  CHECK(store.queue_len("ops/q").value() == 2);
  CHECK(store.queue_pop("ops/q").value() == "one");
  CHECK(store.queue_try_pop("ops/q").value() == "");
  CHECK(store.queue_pop("ops/q", kInVain).error().code == Errc::Timeout);
}

void use_late_operations(StoreClient& store, Dialect dialect) {
  const auto listed = store.under("ops").list_keys();
  if (dialect >= Dialect::F) {
    REQUIRE(listed);
    CHECK(std::ranges::count(*listed, "sum") == 1);
    CHECK(std::ranges::none_of(*listed,
                               [](const std::string& key) { return key.starts_with("init/"); }));
  } else {
    CHECK_FALSE(listed);
  }
  const auto passed = store.barrier("ops/barrier", 1);
  if (dialect >= Dialect::G) {
    CHECK(passed);
    const auto alone = store.barrier("ops/barrier of two", 2, kInVain);
    REQUIRE_FALSE(alone);
    CHECK(alone.error().code == Errc::Timeout);
    CHECK(store.dialect().dialect == Dialect::G);
  } else {
    CHECK_FALSE(passed);
  }
  CHECK(store.ping().has_value() == (dialect >= Dialect::D));

  // Below a prefix it is made of what every server has.
  auto view = store.under("ops");
  CHECK(view.barrier("view", 1));
  CHECK(view.barrier("view of two", 2, kInVain).error().code == Errc::Timeout);
  CHECK(store.get("ops/view/num_members").value() == "1");
  CHECK(store.get("ops/view/last_member").value() == "1");
}

}  // namespace

void use_every_operation(const ServerUnderTest& server) {
  auto connected = StoreClient::connect(server.endpoint, {.timeout = 20s, .call_timeout = 20s});
  INFO((connected ? std::string() : connected.error().message));
  REQUIRE(connected);
  auto& store = *connected;
  CHECK(store.dialect() == (server.dialect < Dialect::D ? ServerDialect{server.dialect}
                                                        : ServerDialect{Dialect::D, true}));

  use_values(store);
  use_numbers(store);
  use_waits(store);
  use_lists(store, server.dialect);
  use_queues(store, server.has_queues);
  use_late_operations(store, server.dialect);

  // PyTorch's prefix and the raw key are the same place.
  auto raw = StoreClient::connect(server.endpoint, {.timeout = 20s, .key_prefix = ""});
  REQUIRE(raw);
  CHECK(raw->get("/ops/sum").value() == "-2");
  CHECK(store.under("ops").get("sum").value() == "-2");
}

}  // namespace muster::store_client

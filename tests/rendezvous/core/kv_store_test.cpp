#include "rendezvous/core/kv_store.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace kv = muster::rendezvous::kv;
using muster::rendezvous::KvClient;
using muster::rendezvous::KvStore;

namespace {

constexpr KvClient kAnn{1};
constexpr KvClient kBob{2};
constexpr KvClient kEve{3};
constexpr std::size_t kAmple = 1 << 20;

template <class Reply>
Reply ask(KvStore& store, const kv::Command& command) {
  return std::get<Reply>(store.execute(kEve, command).reply);
}

std::vector<KvClient> woken_by(KvStore& store, const kv::Command& command) {
  const auto outcome = store.execute(kEve, command);
  return {outcome.woken.begin(), outcome.woken.end()};
}

bool waits(KvStore& store, KvClient client, std::vector<std::string_view> keys) {
  return std::holds_alternative<kv::Withheld>(store.execute(client, kv::Wait{keys}).reply);
}

}  // namespace

TEST_CASE("those who wait for a key are woken in the order in which they came",
          "[rendezvous][kv_store]") {
  KvStore store({kAmple});
  REQUIRE(waits(store, kBob, {"k"}));
  REQUIRE(waits(store, kAnn, {"k"}));
  CHECK(woken_by(store, kv::Set{"k", "v"}) == std::vector{kBob, kAnn});
  CHECK(woken_by(store, kv::Set{"k", "v"}).empty());
}

TEST_CASE("COMPARE_SET wakes if it creates the key, and only then", "[rendezvous][kv_store]") {
  KvStore store({kAmple});
  REQUIRE(waits(store, kAnn, {"k"}));
  CHECK(woken_by(store, kv::CompareSet{"k", "expected", "v"}).empty());
  CHECK(ask<kv::Value>(store, kv::Get{"k"}).bytes.empty());
  CHECK(woken_by(store, kv::CompareSet{"k", "", "v"}) == std::vector{kAnn});
}

TEST_CASE("a client that was woken is in no list any more", "[rendezvous][kv_store]") {
  KvStore store({kAmple});
  REQUIRE(waits(store, kAnn, {"queue"}));
  REQUIRE(waits(store, kBob, {"queue"}));
  CHECK(woken_by(store, kv::QueuePush{"queue", "1"}) == std::vector{kAnn});
  CHECK(ask<kv::Popped>(store, kv::QueuePop{"queue"}).length_before == 1);
  REQUIRE(waits(store, kAnn, {"other"}));
  CHECK(woken_by(store, kv::QueuePush{"queue", "2"}) == std::vector{kBob});
}

TEST_CASE("a key that came and went still ends its part of a wait", "[rendezvous][kv_store]") {
  KvStore store({kAmple});
  REQUIRE(waits(store, kAnn, {"a", "b"}));
  CHECK(woken_by(store, kv::Set{"a", ""}).empty());
  CHECK(ask<kv::Number>(store, kv::Delete{"a"}).value == 1);
  CHECK(woken_by(store, kv::Set{"b", ""}) == std::vector{kAnn});
}

TEST_CASE("the sum of two numbers wraps around, as text too", "[rendezvous][kv_store]") {
  KvStore store({kAmple});
  CHECK(ask<kv::Number>(store, kv::Add{"n", INT64_MAX}).value == INT64_MAX);
  CHECK(ask<kv::Number>(store, kv::Add{"n", 1}).value == INT64_MIN);
  CHECK(ask<kv::Value>(store, kv::Get{"n"}).bytes == "-9223372036854775808");
}

TEST_CASE("a refusal names the key and what is wrong with it", "[rendezvous][kv_store]") {
  KvStore store({kAmple});
  static_cast<void>(store.execute(kAnn, kv::Set{"n", "hello\n"}));
  CHECK(ask<kv::Refused>(store, kv::Add{"n", 1}).reason ==
        "ADD on 'n': its value 'hello?' is not a decimal number of 64 bits");
}

TEST_CASE("a wait for more than the store may hold is refused before anything is kept",
          "[rendezvous][kv_store]") {
  KvStore store({.stored_bytes = 10'000});
  const std::string long_key(1000, 'x');
  std::vector<std::string> names;
  names.reserve(9);
  for (int number = 0; number < 9; ++number) names.push_back(long_key + std::to_string(number));
  const std::vector<std::string_view> keys(names.begin(), names.end());
  const auto refused = ask<kv::Refused>(store, kv::Wait{keys});
  CHECK(refused.reason.find("the store is full, its limit is 10000 bytes") != std::string::npos);
  CHECK(store.bytes() == 0);
  CHECK(store.pending().empty());
}

TEST_CASE("the room of a long value is given back when a short one takes its place",
          "[rendezvous][kv_store]") {
  KvStore store({.stored_bytes = 20'000});
  const std::string most(19'000, 'x');
  for (int round = 0; round < 3; ++round) {
    CHECK(std::holds_alternative<kv::Nothing>(store.execute(kAnn, kv::Set{"k", most}).reply));
    CHECK(std::holds_alternative<kv::Refused>(store.execute(kAnn, kv::Append{"k", most}).reply));
    CHECK(std::holds_alternative<kv::Nothing>(store.execute(kAnn, kv::Set{"k", ""}).reply));
    CHECK(store.bytes() < 1000);
  }
}

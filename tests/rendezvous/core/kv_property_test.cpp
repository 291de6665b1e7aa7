#include "rendezvous/core/kv_store.hpp"
#include "rendezvous/core/planted_fault.hpp"
#include "tests/rendezvous/core/kv_model.hpp"
#include "tests/rendezvous/core/random_command.hpp"

#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>

#include <catch2/catch.hpp>

// Built a second time for each fault that can be planted in the store: then the test is that it is
// found.
namespace kv = muster::rendezvous::kv;
using muster::rendezvous::KvClient;
using muster::rendezvous::KvStore;

namespace {

constexpr std::uint64_t kSequences = 5000;
constexpr int kCommands = 60;
constexpr std::size_t kClients = 4;
constexpr std::size_t kAmple = 1 << 30;

/// Where the store and the model disagreed first.
struct Difference {
  std::string what;
};

/// One random sequence on a store and on the model.
class Sequence {
 public:
  Sequence(std::uint64_t seed, std::size_t stored_bytes)
      : random_(seed), limit_(stored_bytes), store_({.stored_bytes = stored_bytes}) {}

  std::optional<Difference> run() {
    for (int count = 0; count < kCommands; ++count) {
      const KvClient client{random_.draw(kClients)};
      if (random_.draw(15) == 0) {
        store_.forget(client);
        model_.forget(client.value);
        history_ += std::to_string(client.value) + " leaves\n";
      } else if (!step(client, random_.next())) {
        return difference_;
      }
      if (!check_state()) return difference_;
    }
    return clear();
  }

 private:
  bool step(KvClient client, const kv::Command& command) {
    history_ += std::to_string(client.value) + " " + describe(command) + "\n";
    // What a MULTI_SET stored before it was refused is not for the model to know.
    if (limit_ != kAmple && std::holds_alternative<kv::MultiSet>(command)) return true;
    const auto bytes_before = store_.bytes();
    const auto outcome = store_.execute(client, command);
    const auto* refused = std::get_if<kv::Refused>(&outcome.reply);
    if (refused != nullptr && refused->reason.find("the store is full") != std::string_view::npos) {
      return expect(store_.bytes() == bytes_before, "a refused command changed what is stored") &&
             expect(limit_ != kAmple, "the store says that it is full");
    }
    const auto wanted = model_.execute(client.value, command);
    std::vector<std::uint64_t> woken;
    for (const auto each : outcome.woken) woken.push_back(each.value);
    return expect((refused != nullptr) == wanted.is_refused, "one of the two refuses") &&
           expect(std::holds_alternative<kv::Withheld>(outcome.reply) == wanted.is_withheld,
                  "one of the two withholds the reply") &&
           expect(wire_bytes(outcome.reply) == wanted.reply, "the replies differ") &&
           expect(woken == wanted.woken, "not the same clients are woken");
  }

  bool check_state() {
    std::map<std::uint64_t, std::multiset<std::string>> pending;
    for (const auto& each : store_.pending()) {
      pending[each.client.value].insert(each.keys.begin(), each.keys.end());
    }
    return expect(store_.keys() == model_.keys(), "the numbers of keys differ") &&
           expect(pending == model_.pending(), "not the same waits are pending") &&
           expect(store_.bytes() <= limit_, "the store exceeds its limit");
  }

  /// Removes everything that there is.
  std::optional<Difference> clear() {
    history_ += "all is removed\n";
    for (std::size_t client = 0; client < kClients; ++client) store_.forget(KvClient{client});
    const KvClient last{kClients};
    for (const auto key : {"a", "b", "c", ""}) remove(last, key);
    remove(last, std::string_view("a\0", 2));
    expect(store_.bytes() == 0, "an empty store still counts bytes");
    return difference_;
  }

  void remove(KvClient client, std::string_view key) {
    while (std::get<kv::Popped>(store_.execute(client, kv::QueuePop{key}).reply).length_before >
           0) {
    }
    static_cast<void>(store_.execute(client, kv::Delete{key}));
  }

  bool expect(bool holds, const char* what) {
    if (!holds) difference_ = Difference{std::string(what) + " after:\n" + history_};
    return holds;
  }

  RandomCommand random_;
  std::size_t limit_;
  KvStore store_;
  KvModel model_;
  std::string history_;
  std::optional<Difference> difference_;
};

/// MUSTER_SEED repeats a run.
std::uint64_t first_seed() {
  const char* const given = std::getenv("MUSTER_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "MUSTER_SEED=" << seed << std::endl;
  return seed;
}

/// Many sequences, each with a seed of its own: `seed` and those after it.
std::optional<Difference> run_sequences(std::uint64_t seed, std::size_t stored_bytes) {
  for (std::uint64_t count = 0; count < kSequences; ++count) {
    auto difference = Sequence(seed + count, stored_bytes).run();
    if (!difference) continue;
    difference->what = "seed " + std::to_string(seed + count) + ": " + difference->what;
    return difference;
  }
  return std::nullopt;
}

}  // namespace

#if MUSTER_PLANTED_FAULT == 0

TEST_CASE("the store does what the model does", "[rendezvous][kv_store]") {
  const auto difference = run_sequences(first_seed(), kAmple);
  if (difference) FAIL(difference->what);
}

TEST_CASE("a store that is nearly full refuses, changes nothing, and goes on",
          "[rendezvous][kv_store]") {
  constexpr std::size_t kTight = 1500;
  const auto difference = run_sequences(first_seed(), kTight);
  if (difference) FAIL(difference->what);
}

#else

TEST_CASE("the planted fault is found", "[rendezvous][kv_store]") {
  const auto difference = run_sequences(first_seed(), kAmple);
  REQUIRE(difference);
  std::cout << difference->what;
}

#endif

#include "rendezvous/core/planted_fault.hpp"
#include "rendezvous/store/decoder.hpp"
#include "tests/rendezvous/core/kv_model.hpp"
#include "tests/rendezvous/core/random_command.hpp"
#include "tests/rendezvous/store/reference_codec.hpp"
#include "tests/rendezvous/store/store_oracle.hpp"

#include <cstdlib>
#include <iostream>
#include <random>

#include <catch2/catch.hpp>

// Built once more for each fault that can be planted in the store: then the test is that it is
// found.

using muster::store::Decoder;
using muster::store::Dialect;

namespace {

constexpr std::uint64_t kTalks = 3000;
constexpr int kMessages = 40;
constexpr std::size_t kDialects = 7;

/// MUSTER_SEED repeats a run.
std::uint64_t first_seed() {
  const char* const given = std::getenv("MUSTER_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "MUSTER_SEED=" << seed << std::endl;
  return seed;
}

/// Three clients who talk at random: commands mostly, some of them at a limit or just beyond, some
/// damaged; in pieces.
class Talk {
 public:
  explicit Talk(std::uint64_t seed) : random_(seed), fixed_(draw_fixed()), oracle_(fixed_) {
    for (auto& dialect : dialects_) dialect = fixed_.value_or(draw_dialect());
    for (std::size_t client = 0; client < StoreOracle::kClients; ++client) begin(client);
  }

  /// What differs; empty: nothing.
  std::string run() {
    for (int count = 0; count < kMessages; ++count) {
      if (auto difference = step(random_.draw(StoreOracle::kClients)); !difference.empty()) {
        return difference + " after:\n" + history_;
      }
    }
    return "";
  }

 private:
  std::string step(std::size_t client) {
    const std::string who = std::to_string(client);
    if (random_.draw(12) == 0) {
      history_ += who + " leaves\n";
      auto difference = oracle_.leave(client);
      begin(client);
      return difference;
    }
    if (random_.draw(4) == 0) {
      history_ += who + " is given time\n";
      return oracle_.settle(client);
    }
    auto& pending = pending_[client];
    if (pending.empty()) pending = message(client);
    const std::size_t size =
        random_.draw(3) == 0 ? 1 + random_.draw(pending.size()) : pending.size();
    const std::string piece = pending.substr(0, size);
    pending.erase(0, size);
    history_ += who + " sends " + std::to_string(size) + " bytes\n";
    return oracle_.arrive(client, piece);
  }

  std::string message(std::size_t client) {
    std::string bytes = edge_or_command(client);
    if (random_.draw(40) == 0 && !bytes.empty()) {
      bytes[random_.draw(bytes.size())] = static_cast<char>(random_.draw(256));
      history_ += "damaged: ";
    }
    if (bytes.empty())
      bytes = ReferenceCodec::encode(muster::rendezvous::kv::CountKeys{}, dialects_[client]);
    return bytes;
  }

  std::string edge_or_command(std::size_t client) {
    namespace kv = muster::rendezvous::kv;
    if (random_.draw(10) != 0) {
      const auto& command = random_.next();
      history_ += describe(command) + ": ";
      return ReferenceCodec::encode(command, dialects_[client]);
    }
    // StoreOracle's limits are 20 and 32 bytes.
    const std::string key(19 + random_.draw(3), 'k');
    const std::string value(31 + random_.draw(3), 'v');
    const kv::Command command =
        random_.draw(2) == 0 ? kv::Command(kv::Set{key, ""}) : kv::Set{"a", value};
    history_ += describe(command) + ": ";
    return ReferenceCodec::encode(command, dialects_[client]);
  }

  void begin(std::size_t client) {
    if (!fixed_) dialects_[client] = draw_dialect();
    pending_[client] =
        dialects_[client] >= Dialect::C ? std::string("\x00\xCE\xF7\x85\x3C", 5) : "";
  }

  std::optional<Dialect> draw_fixed() {
    if (random_.draw(2) == 0) return std::nullopt;
    return draw_dialect();
  }
  Dialect draw_dialect() { return static_cast<Dialect>(random_.draw(kDialects)); }

  RandomCommand random_;
  std::optional<Dialect> fixed_;
  StoreOracle oracle_;
  std::array<Dialect, StoreOracle::kClients> dialects_{};
  std::array<std::string, StoreOracle::kClients> pending_;
  std::string history_;
};

/// The first of many talks in which something differs, in words.
std::string run_talks(std::uint64_t seed) {
  for (std::uint64_t count = 0; count < kTalks; ++count) {
    const auto difference = Talk(seed + count).run();
    if (!difference.empty()) return "seed " + std::to_string(seed + count) + ": " + difference;
  }
  return "";
}

}  // namespace

#if MUSTER_PLANTED_FAULT == 0

TEST_CASE("clients get what the reference says, however their bytes arrive", "[store][codec]") {
  const auto difference = run_talks(first_seed());
  if (!difference.empty()) FAIL(difference);
}

TEST_CASE("any split of the bytes gives the same commands", "[store][codec]") {
  RandomCommand random(first_seed());
  const Decoder::Rules rules{};
  for (int round = 0; round < 500; ++round) {
    const auto dialect = static_cast<Dialect>(random.draw(kDialects));
    Decoder::Rules fixed = rules;
    fixed.dialect = dialect;
    std::string bytes = dialect >= Dialect::C ? std::string("\x00\xCE\xF7\x85\x3C", 5) : "";
    std::string wanted;
    for (int count = 0; count < 20; ++count) {
      const auto& command = random.next();
      const auto encoded = ReferenceCodec::encode(command, dialect);
      bytes += encoded;
      if (!encoded.empty()) wanted += describe(command) + "\n";
    }

    Decoder decoder(fixed);
    Decoder::Scratch scratch;
    std::string got;
    std::string in;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t size = std::min(bytes.size() - at, 1 + random.draw(30));
      in.append(bytes, at, size);
      at += size;
      for (;;) {
        const auto step = decoder.next(in, fixed, scratch);
        if (step.found == Decoder::Found::Command) got += describe(step.command) + "\n";
        REQUIRE(step.found != Decoder::Found::Refused);
        in.erase(0, step.consumed);
        if (step.found != Decoder::Found::Command) break;
      }
    }
    CHECK(got == wanted);
    CHECK(in.empty());
  }
}

#else

TEST_CASE("the planted fault is found", "[store][codec]") {
  const auto difference = run_talks(first_seed());
  REQUIRE_FALSE(difference.empty());
  std::cout << difference;
}

#endif

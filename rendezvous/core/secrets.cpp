#include "rendezvous/core/secrets.hpp"

namespace muster::rendezvous {
namespace {

/// SplitMix64's step: spreads each bit of the state over the result.
std::uint64_t next(std::uint64_t& state) {
  state += 0x9E3779B97F4A7C15U;
  auto mixed = state;
  mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
  return mixed ^ (mixed >> 31U);
}

}  // namespace

std::string round_secret(std::uint64_t seed) {
  constexpr auto kDigits = "0123456789abcdef";
  std::string text;
  auto state = seed;
  state = next(state);  // Neighbouring seeds part at once.
  for (int word = 0; word < 2; ++word) {
    auto bits = next(state);
    for (int digit = 0; digit < 16; ++digit, bits >>= 4U) text += kDigits[bits & 0xFU];
  }
  return text;
}

}  // namespace muster::rendezvous

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// The knock on a store's port (protocol.md 4): proves that the way there is open, and that who
/// comes belongs to the round. A connection of its own: the knocker sends `knock(secret)` and gets
/// kKnockAnswerBytes, then the end.
namespace muster::store {

/// No c10d client begins like this, nor does anything else that comes to a port of muster.
constexpr std::string_view kKnockMagic = "\xf6KNOCK\x01";

constexpr std::size_t kMaxKnockSecret = 255;

/// kKnockMagic, the secret's length in one byte, the secret.
[[nodiscard]] inline std::string knock(std::string_view secret) {
  std::string bytes(kKnockMagic);
  bytes += static_cast<char>(secret.size());
  return bytes.append(secret);
}

constexpr std::size_t kKnockAnswerBytes = kKnockMagic.size() + 1;

/// kKnockMagic, then 1: welcome, or 0: another round's secret, try again later.
[[nodiscard]] inline std::string knock_answer(bool is_welcome) {
  std::string bytes(kKnockMagic);
  bytes += is_welcome ? '\1' : '\0';
  return bytes;
}

}  // namespace muster::store

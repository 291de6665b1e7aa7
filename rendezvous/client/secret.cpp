#include "rendezvous/client/secret.hpp"

#include "base/assert.hpp"

#include <array>
#include <cstdint>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

namespace muster::rendezvous {
namespace {

std::string in_hex(const unsigned char* bytes, std::size_t size) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * size);
  for (std::size_t at = 0; at < size; ++at) {
    text += kDigits[bytes[at] >> 4];
    text += kDigits[bytes[at] & 15];
  }
  return text;
}

void append_length(std::string& text, std::uint64_t length) {
  for (int shift = 56; shift >= 0; shift -= 8) text += static_cast<char>(length >> shift & 0xff);
}

const unsigned char* raw(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

Result<std::string> random_secret() {
  std::array<unsigned char, kSecretBytes> bytes{};
  if (::RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    return fail(Errc::Internal, "make a secret: the system's random generator failed");
  }
  return in_hex(bytes.data(), bytes.size());
}

Incarnation incarnation_of(std::string_view secret) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  MUSTER_ASSERT(::EVP_Digest(secret.data(), secret.size(), digest.data(), &size, ::EVP_sha256(),
                             nullptr) == 1);
  return {in_hex(digest.data(), size)};
}

std::string proof(std::string_view key, const std::vector<std::string_view>& parts) {
  std::string text;
  for (const auto part : parts) {
    append_length(text, part.size());
    text += part;
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> code{};
  unsigned int size = 0;
  MUSTER_ASSERT(::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()), raw(text),
                       text.size(), code.data(), &size) != nullptr);
  return {reinterpret_cast<const char*>(code.data()), size};
}

bool are_same_secret(std::string_view one, std::string_view other) {
  return one.size() == other.size() && ::CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace muster::rendezvous

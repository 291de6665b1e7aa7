#pragma once

#include "base/error.hpp"
#include "base/membership.hpp"

#include <string>
#include <string_view>
#include <vector>

/// Secrets, and proofs that one knows them (OpenSSL's libcrypto).
namespace muster::rendezvous {

constexpr std::size_t kSecretBytes = 32;

/// kSecretBytes from the system's generator, in hexadecimal. Fails where the system has none.
[[nodiscard]] Result<std::string> random_secret();

/// The SHA-256 of the secret's text, in hexadecimal.
[[nodiscard]] Incarnation incarnation_of(std::string_view secret);

/// HMAC-SHA256 of `parts`, each with its length before it, so that no two lists of parts are the
/// same text. 32 raw bytes.
[[nodiscard]] std::string proof(std::string_view key, const std::vector<std::string_view>& parts);

/// Takes the same time wherever they differ.
[[nodiscard]] bool are_same_secret(std::string_view one, std::string_view other);

}  // namespace muster::rendezvous

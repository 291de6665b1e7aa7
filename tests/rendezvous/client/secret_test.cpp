#include "rendezvous/client/secret.hpp"

#include <catch2/catch.hpp>

using namespace muster::rendezvous;

namespace {

std::string in_hex(std::string_view bytes) {
  std::string text;
  for (const char each : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(each)));
    text += digits;
  }
  return text;
}

}  // namespace

TEST_CASE("an incarnation is the SHA-256 of its secret", "[secret]") {
  // FIPS 180-2, appendix B.1.
  CHECK(incarnation_of("abc").value ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("secrets are random", "[secret]") {
  const auto one = random_secret();
  const auto other = random_secret();
  REQUIRE(one);
  REQUIRE(other);
  CHECK(one->size() == 2 * kSecretBytes);
  CHECK(*one != *other);
}

TEST_CASE("a proof is the HMAC-SHA-256 of its parts, each with its length", "[secret]") {
  // From Python's hmac: key b"Jefe", message b"\0"*7+b"\x04what"+b"\0"*7+b"\x02do".
  CHECK(in_hex(proof("Jefe", {"what", "do"})) ==
        "d9dcf1fff5482368fe9050f72b0e702b21e5fc69ac163604d86b5d309bd0e99a");
  CHECK(proof("Jefe", {"wha", "tdo"}) != proof("Jefe", {"what", "do"}));
  CHECK(proof("jefe", {"what", "do"}) != proof("Jefe", {"what", "do"}));
  CHECK(proof("", {}).size() == 32);
}

TEST_CASE("secrets are the same or not, wherever they differ", "[secret]") {
  CHECK(are_same_secret("", ""));
  CHECK(are_same_secret("abc", "abc"));
  CHECK_FALSE(are_same_secret("abc", "abd"));
  CHECK_FALSE(are_same_secret("abc", "bbc"));
  CHECK_FALSE(are_same_secret("abc", "ab"));
}

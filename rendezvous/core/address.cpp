#include "rendezvous/core/address.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace muster::rendezvous {
namespace {

constexpr int kIpv4 = 4;
constexpr int kIpv6 = 6;
constexpr int kNoAddress = 9;  // Behind both.

std::optional<std::uint32_t> number(std::string_view digits, int base, std::uint32_t most) {
  std::uint32_t value = 0;
  const auto* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value, base);
  if (error != std::errc{} || stopped != end || value > most) return std::nullopt;
  return value;
}

std::optional<std::vector<std::uint8_t>> ipv4(std::string_view text) {
  std::vector<std::uint8_t> bytes;
  for (const auto part : split(text, '.')) {
    const auto value = number(part, 10, 255);
    if (!value) return std::nullopt;
    bytes.push_back(static_cast<std::uint8_t>(*value));
  }
  if (bytes.size() != 4) return std::nullopt;
  return bytes;
}

/// The groups of one side of "::". Empty text: none.
std::optional<std::vector<std::uint8_t>> groups(std::string_view text) {
  std::vector<std::uint8_t> bytes;
  if (text.empty()) return bytes;
  for (const auto part : split(text, ':')) {
    if (const auto last = ipv4(part)) {
      bytes.insert(bytes.end(), last->begin(), last->end());
      continue;
    }
    const auto value = number(part, 16, 0xFFFF);
    if (!value) return std::nullopt;
    bytes.push_back(static_cast<std::uint8_t>(*value >> 8U));
    bytes.push_back(static_cast<std::uint8_t>(*value & 0xFFU));
  }
  return bytes;
}

std::optional<std::array<std::uint8_t, 16>> ipv6(std::string_view text) {
  const auto gap = text.find("::");
  const auto head = groups(text.substr(0, gap));
  const auto tail =
      gap == std::string_view::npos ? std::vector<std::uint8_t>{} : groups(text.substr(gap + 2));
  if (!head || !tail) return std::nullopt;
  const auto given = head->size() + tail->size();
  if (given > 16 || (gap == std::string_view::npos && given != 16)) return std::nullopt;
  std::array<std::uint8_t, 16> bytes{};
  std::copy(head->begin(), head->end(), bytes.begin());
  std::copy(tail->begin(), tail->end(), bytes.end() - static_cast<std::ptrdiff_t>(tail->size()));
  return bytes;
}

constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

}  // namespace

AddressKey address_key(std::string_view address) {
  AddressKey key;
  if (const auto four = ipv4(address)) {
    key.family = kIpv4;
    std::copy(four->begin(), four->end(), key.bytes.begin() + kMapped.size());
    return key;
  }
  const auto scope = address.find('%');
  if (const auto six = ipv6(address.substr(0, scope))) {
    key.family = kIpv6;
    key.bytes = *six;
    if (std::equal(kMapped.begin(), kMapped.end(), key.bytes.begin())) {
      key.family = kIpv4;
      std::fill_n(key.bytes.begin(), kMapped.size(), std::uint8_t{0});
    }
    if (scope != std::string_view::npos) key.text = address.substr(scope + 1);
    return key;
  }
  key.family = kNoAddress;
  key.text = address;
  return key;
}

bool is_loopback(std::string_view host) {
  if (host == "localhost") return true;
  const auto key = address_key(host);
  if (key.family == kIpv4) return key.bytes[kMapped.size()] == 127;
  return key.family == kIpv6 && key == address_key("::1");
}

bool is_unspecified(std::string_view host) {
  if (host.empty()) return true;
  const auto key = address_key(host);
  return key.family != kNoAddress && key.bytes == decltype(key.bytes){};
}

}  // namespace muster::rendezvous

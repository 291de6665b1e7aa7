#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

/// Addresses as the membership core needs them: to order nodes, and to tell which other machines
/// can use. Text only; nothing is looked up.
namespace muster::rendezvous {

/// Orders addresses as numbers: IPv4, then IPv6, then whatever is neither, as text. An IPv4 address
/// that is written as IPv6 ("::ffff:10.0.0.1") stands with IPv4.
struct AddressKey {
  int family = 6;
  std::array<std::uint8_t, 16> bytes{};
  std::string text;  ///< Of what is no address; the scope of a link-local one.
  friend auto operator<=>(const AddressKey&, const AddressKey&) = default;
};
[[nodiscard]] AddressKey address_key(std::string_view address);

/// Nobody else can reach it: "127.0.1.1", "::1", "localhost".
[[nodiscard]] bool is_loopback(std::string_view host);
/// Says nothing: "", "0.0.0.0", "::".
[[nodiscard]] bool is_unspecified(std::string_view host);

}  // namespace muster::rendezvous

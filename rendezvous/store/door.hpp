#pragma once

#include "base/error.hpp"

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::store {

using Address = std::array<std::uint8_t, 16>;  ///< IPv6, or IPv4 mapped into it.

/// From a numeric address, IPv4 or IPv6; a %scope is left out of account. Fails on anything else.
[[nodiscard]] Result<Address> parse_address(const std::string& text);

struct Network {
  Address address{};
  unsigned bits = 0;  ///< Of the address, from the left, that its members share. 0: everybody.
};

/// `--store-allow`: "10.0.0.0/8", "fd00::/8", a single address, or "any".
[[nodiscard]] Result<Network> parse_network(const std::string& text);

/// Who may come to a store (protocol.md 7): the c10d protocol has no authentication, so the address
/// decides. Loopback always may.
struct Door {
  bool is_open = true;             ///< Everybody may.
  std::vector<Network> allowed{};  ///< By the user.
  std::set<Address> admitted{};    ///< By name of the nodes, and by knocking.
  /// Of the round: an address from which somebody knocks with it is admitted (knock.hpp). Empty:
  /// knocking is in vain.
  std::string secret{};

  [[nodiscard]] bool admits(const Address& address) const;
};

}  // namespace muster::store

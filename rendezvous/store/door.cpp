#include "rendezvous/store/door.hpp"

#include "rendezvous/store/connections.hpp"

#include <algorithm>
#include <charconv>

namespace muster::store {
namespace {

constexpr unsigned kAddressBits = 128;
constexpr unsigned kMappedBits = 96;  // Before the IPv4 address in ::ffff:0:0/96.

bool is_mapped(const Address& address) {
  return std::all_of(address.begin(), address.begin() + 10, [](auto byte) { return byte == 0; }) &&
         address[10] == 0xff && address[11] == 0xff;
}

bool is_loopback(const Address& address) {
  if (is_mapped(address)) return address[12] == 127;
  return std::all_of(address.begin(), address.end() - 1, [](auto byte) { return byte == 0; }) &&
         address.back() == 1;
}

bool holds(const Network& network, const Address& address) {
  for (unsigned at = 0; at < address.size(); ++at) {
    const unsigned bits = network.bits > 8 * at ? std::min(8U, network.bits - 8 * at) : 0;
    const auto mask = static_cast<std::uint8_t>(0xff00U >> bits);
    if (((network.address[at] ^ address[at]) & mask) != 0) return false;
  }
  return true;
}

}  // namespace

Result<Address> parse_address(const std::string& text) {
  // The scope only says by which interface; it may name one of another machine.
  const auto numeric = posix::numeric_address({text.substr(0, text.find('%')), 0});
  if (!numeric) return pass(numeric.error());
  return to_peer(*numeric).address;
}

Result<Network> parse_network(const std::string& text) {
  if (text == "any") return Network{};
  const auto slash = text.find('/');
  const auto address = parse_address(text.substr(0, slash));
  const auto refused = [&](const std::string& cause) {
    return fail(Errc::InvalidArgument, "network '" + text + "': " + cause +
                                           "; give one such as 10.0.0.0/8, fd00::/8 or 10.1.2.3, "
                                           "or any");
  };
  if (!address) return refused("the address is not numeric");
  const bool is_v4 = is_mapped(*address) && text.find(':') == std::string::npos;
  if (slash == std::string::npos) return Network{*address, kAddressBits};
  const unsigned most = is_v4 ? kAddressBits - kMappedBits : kAddressBits;
  unsigned bits = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + slash + 1, end, bits);
  if (parsed.ec != std::errc{} || parsed.ptr != end || bits > most) {
    return refused("behind the slash stands no number of 0 to " + std::to_string(most));
  }
  return Network{*address, is_v4 ? bits + kMappedBits : bits};
}

bool Door::admits(const Address& address) const {
  if (is_open || is_loopback(address) || admitted.contains(address)) return true;
  return std::ranges::any_of(allowed,
                             [&](const Network& network) { return holds(network, address); });
}

}  // namespace muster::store

#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

/// A host (name or numeric address, IPv6 without brackets) and a TCP port.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// `host:port`, with brackets around an IPv6 address.
[[nodiscard]] std::string to_string(const Endpoint& endpoint);

/// Parses `host`, `host:port`, `[v6]` or `[v6]:port`; a bare IPv6 address (more than one colon) is
/// a host. The port is `default_port` where none is given. Fails on an empty host, and on a port
/// that is no number of 0 to 65535.
[[nodiscard]] Result<Endpoint> parse_endpoint(std::string_view text, std::uint16_t default_port);

}  // namespace muster

#pragma once

#include "base/endpoint.hpp"
#include "base/error.hpp"

#include <string>
#include <vector>

namespace muster::posix {

/// Every address of this machine's interfaces that are up, numeric, IPv4 before IPv6, each once; a
/// link-local one with its %scope. Loopback is left out.
[[nodiscard]] Result<std::vector<std::string>> local_addresses();

/// The interface that has this numeric address ("eth0"; "lo" for loopback); empty where none has.
[[nodiscard]] std::string interface_of(const std::string& address);

/// The address of this machine from which a connection to that numeric one would come, by the
/// routes of now; empty where no route leads there. Sends nothing.
[[nodiscard]] std::string source_address(const Endpoint& to);

}  // namespace muster::posix

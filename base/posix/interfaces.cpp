#include "base/posix/interfaces.hpp"

#include "base/posix/socket.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>

namespace muster::posix {
namespace {

struct Free {
  void operator()(ifaddrs* list) const noexcept { ::freeifaddrs(list); }
};
using Interfaces = std::unique_ptr<ifaddrs, Free>;

Result<Interfaces> list_interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0)
    return pass(errno_error(errno, "list the addresses of this machine"));
  return Interfaces(list);
}

/// The address of an entry, numeric; empty where it has none that we could use.
std::string address_of(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0) return {};
  SocketAddress address;
  switch (entry.ifa_addr->sa_family) {
    case AF_INET:
      address.size = sizeof(sockaddr_in);
      break;
    case AF_INET6:
      address.size = sizeof(sockaddr_in6);
      break;
    default:
      return {};
  }
  std::memcpy(&address.storage, entry.ifa_addr, address.size);
  return to_endpoint(address).host;
}

}  // namespace

Result<std::vector<std::string>> local_addresses() {
  const auto list = list_interfaces();
  if (!list) return pass(list.error());
  std::vector<std::string> found;
  std::ptrdiff_t v4 = 0;  // So many of them are IPv4, and first.
  for (const auto* entry = list->get(); entry != nullptr; entry = entry->ifa_next) {
    if ((entry->ifa_flags & IFF_LOOPBACK) != 0) continue;
    auto address = address_of(*entry);
    const bool is_new = std::find(found.begin(), found.end(), address) == found.end();
    if (address.empty() || !is_new) continue;
    const bool is_v4 = address.find(':') == std::string::npos;
    found.insert(is_v4 ? found.begin() + v4++ : found.end(), std::move(address));
  }
  return found;
}

std::string interface_of(const std::string& address) {
  const auto list = list_interfaces();
  if (!list || address.empty()) return {};
  for (const auto* entry = list->get(); entry != nullptr; entry = entry->ifa_next) {
    if (address_of(*entry) == address) return entry->ifa_name;
  }
  return {};
}

std::string source_address(const Endpoint& to) {
  const auto address = numeric_address(to);
  if (!address) return {};
  const Fd socket(::socket(address->family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), address->raw(), address->size) != 0) return {};
  return to_endpoint(local_address(socket.get())).host;
}

}  // namespace muster::posix

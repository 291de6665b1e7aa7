#include "launcher/hosting.hpp"

#include "rendezvous/core/address.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace muster::launcher {
namespace {

using rendezvous::is_loopback;

}  // namespace

bool is_localhost(const std::string& host) {
  std::string name = host;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (name.ends_with('.')) name.pop_back();
  return name == "localhost" || name.ends_with(".localhost") || name == "localhost.localdomain" ||
         name == "ip6-localhost";
}

Hosting hosting_of(const HostingFacts& facts) {
  if (facts.is_host == false) return Hosting::Never;
  const bool is_told = facts.is_host == true;
  const bool has_other_rank = facts.node_rank && facts.node_rank->value != 0;
  if (facts.owns_address) {
    return has_other_rank && !is_told ? Hosting::AfterSilence : Hosting::AtOnce;
  }
  const bool is_first = facts.node_rank && facts.node_rank->value == 0;
  return is_told || is_first ? Hosting::AfterSilence : Hosting::Never;
}

bool owns(const std::vector<std::string>& addresses, const std::vector<std::string>& local) {
  return std::ranges::any_of(addresses, [&local](const std::string& address) {
    return is_loopback(address) || std::ranges::find(local, address) != local.end();
  });
}

Binding binding_of(const std::string& host, const std::vector<std::string>& addresses,
                   const std::vector<std::string>& local) {
  const bool loops = std::ranges::any_of(addresses, is_loopback);
  const bool means_loopback =
      is_localhost(host) || (addresses.size() == 1 && addresses.front() == host);
  std::vector<std::string> own;
  for (const auto& address : addresses) {
    const bool is_own = is_loopback(address) || std::ranges::find(local, address) != local.end();
    if (is_own) own.push_back(address);
  }
  if (own.empty() || (loops && !means_loopback)) return {.hosts = {"::", "0.0.0.0"}, .all = false};
  return {.hosts = std::move(own), .all = true};
}

}  // namespace muster::launcher

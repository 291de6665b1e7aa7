#include "launcher/node_facts.hpp"

#include "base/posix/file.hpp"
#include "base/posix/fork.hpp"
#include "base/posix/interfaces.hpp"
#include "base/posix/locked_file.hpp"
#include "base/posix/tcp_stream.hpp"
#include "launcher/lookup.hpp"
#include "launcher/text.hpp"
#include "launcher/values.hpp"
#include "rendezvous/client/secret.hpp"
#include "rendezvous/client/token_file.hpp"
#include "rendezvous/core/address.hpp"
#include "rendezvous/store/door.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace muster::launcher {
namespace {

bool is_in_container(const Environment& environment) {
  return posix::has_own_process_namespace() ||
         value_of(environment, "KUBERNETES_SERVICE_HOST").has_value();
}

/// A muster that a worker starts is not to write over ours.
constexpr const char* kReportVariable = "MUSTER_REPORT";
constexpr const char* kTokenFileVariable = "MUSTER_TOKEN_FILE";
constexpr const char* kBeaconVariable = "MUSTER_BEACON";  // Of an outer agent's worker.

/// Whether an entry of the environment (`NAME=value`) is of that variable.
bool is_of(const std::string& entry, std::string_view name) {
  return entry.starts_with(name) && entry.substr(name.size()).starts_with('=');
}

}  // namespace

std::string machine_name(const Environment& environment) {
  constexpr std::size_t kLongest = 64;
  const auto id = posix::read_start("/etc/machine-id", kLongest);
  std::string name(id ? trimmed(*id) : std::string_view());
  if (const auto node = value_of(environment, "SLURMD_NODENAME")) name += "/" + *node;
  return name;
}

std::string marker_path(const Endpoint& endpoint, const std::string& job,
                        const Environment& environment) {
  if (is_in_container(environment)) return {};
  constexpr std::size_t kEnough = 32;
  const auto name = rendezvous::incarnation_of(to_string(endpoint) + " " + job).value;
  return "/dev/shm/muster-" + posix::user_id() + "-" + name.substr(0, kEnough);
}

Result<std::optional<std::string>> read_token(const Options& options) {
  if (!options.token_file) return std::nullopt;
  auto token = rendezvous::read_token_file(*options.token_file);
  if (!token) return pass(token.error());
  return std::optional(std::move(*token));
}

Result<std::string> own_address(const Options& options) {
  if (options.local_addr.empty()) return std::string();
  const auto addresses = posix::resolve({options.local_addr, 0});
  if (!addresses) return pass(addresses.error());
  std::string loopback;
  for (const auto& address : *addresses) {
    auto host = posix::to_endpoint(address).host;
    if (rendezvous::is_loopback(host)) {
      loopback = std::move(host);
    } else if (!posix::interface_of(host).empty()) {
      return host;
    }
  }
  if (!loopback.empty()) return loopback;
  return fail(Errc::InvalidArgument,
              in_quotes(options.local_addr) + " is no address of this machine");
}

std::string any_address() { return posix::bind_tcp({"::", 0}) ? "::" : "0.0.0.0"; }

Result<void> name_interface(Options& options) {
  if (options.iface.find('/') == std::string::npos) return {};
  const auto network = store::parse_network(options.iface);
  if (!network) return pass(network.error());
  const store::Door inside{.is_open = false, .allowed = {*network}};
  const auto addresses = posix::local_addresses();
  if (!addresses) return pass(addresses.error());
  for (const auto& text : *addresses) {
    const auto address = store::parse_address(text);
    if (!address || !inside.admits(*address)) continue;
    options.iface = posix::interface_of(text);
    return {};
  }
  return fail(Errc::InvalidArgument,
              in_quotes(options.iface) + ": no interface of this machine has an address in it");
}

std::vector<std::string> workers_base(std::vector<std::string> entries, const Options& options) {
  std::erase_if(entries, [](const auto& entry) {
    return is_of(entry, kTokenFileVariable) || is_of(entry, kBeaconVariable) ||
           is_of(entry, kReportVariable);
  });
  if (!options.iface.empty() && options.iface != "auto") {
    for (const std::string name : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"}) {
      const bool set =
          std::ranges::any_of(entries, [&name](const auto& entry) { return is_of(entry, name); });
      if (!set) entries.push_back(name + "=" + options.iface);
    }
  }
  return entries;
}

}  // namespace muster::launcher

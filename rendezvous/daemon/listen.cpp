#include "rendezvous/daemon/listen.hpp"

#include "base/posix/socket.hpp"
#include "base/posix/tcp_stream.hpp"
#include "rendezvous/daemon/options.hpp"
#include "rendezvous/server/server.hpp"

#include <vector>

namespace muster::rendezvous {

Result<posix::Fd> listen_at(const std::optional<Endpoint>& listen) {
  const Endpoint wanted = listen.value_or(Endpoint{.host = {}, .port = kDefaultPort});
  if (wanted.host.empty()) {
    auto both = Server::listen({.host = "::", .port = wanted.port});
    // A port that is taken is InvalidArgument; a kernel without IPv6 is not.
    if (!both && both.error().code == Errc::InvalidArgument)
      return pass(posix::naming_holder(both.error(), wanted.port));
    if (both) return both;
    return Server::listen({.host = "0.0.0.0", .port = wanted.port});
  }
  const auto addresses = posix::resolve(wanted);
  if (!addresses) return pass(addresses.error());
  std::vector<Endpoint> endpoints;
  for (const auto& address : *addresses) endpoints.push_back(posix::to_endpoint(address));
  return listen_at_first(endpoints);
}

Result<posix::Fd> listen_at_first(std::span<const Endpoint> endpoints) {
  Result<posix::Fd> listener = fail(Errc::NotFound, "the host has no address");
  for (const auto& endpoint : endpoints) {
    listener = Server::listen(endpoint);
    // Where any other port could be had, the address is ours and this port is taken: perhaps by
    // another musterd, whose nodes and ours would miss each other.
    if (listener) return listener;
    if (posix::bind_tcp({.host = endpoint.host, .port = 0}))
      return pass(posix::naming_holder(listener.error(), endpoint.port));
  }
  return listener;
}

}  // namespace muster::rendezvous

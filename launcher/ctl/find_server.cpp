#include "launcher/ctl/find_server.hpp"

#include "base/posix/tcp_stream.hpp"
#include "base/text.hpp"
#include "rendezvous/client/token_file.hpp"
#include "rendezvous/server/local_server_file.hpp"

#include <algorithm>
#include <vector>

namespace muster::ctl {
namespace {

using rendezvous::LocalServer;

/// A server may have been started from a session with XDG_RUNTIME_DIR, from one without, or by a
/// service manager; so may we.
std::vector<std::string> folders(const Environment& environment) {
  std::vector<std::string> all{rendezvous::runtime_folder("")};
  all.push_back(rendezvous::runtime_folder("/run/user/" + posix::user_id()));
  const auto found = environment.find("XDG_RUNTIME_DIR");
  if (found != environment.end() && !found->second.empty()) {
    all.push_back(rendezvous::runtime_folder(found->second));
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::string list_of(const std::vector<LocalServer>& servers) {
  std::string list;
  for (const auto& server : servers) {
    list += "\n  --server " + to_string(server.endpoint) + "  " + printable(server.program) + " (" +
            std::to_string(server.pid) + ")";
    if (!server.job.empty()) list += ", job " + printable(server.job);
  }
  return list;
}

/// Whether a local server, which names a numeric address, is the one that the user named.
bool is_at(const LocalServer& server, const Endpoint& named) {
  if (server.endpoint.port != named.port) return false;
  const auto addresses = posix::resolve(named);
  return addresses && std::ranges::any_of(*addresses, [&](const auto& address) {
           return posix::to_endpoint(address) == server.endpoint;
         });
}

}  // namespace

Result<FoundServer> find_server(const Options& options, const Environment& environment) {
  std::optional<std::string> token;
  if (options.token_file) {
    auto read = rendezvous::read_token_file(*options.token_file);
    if (!read) return fail(Errc::InvalidArgument, "--token-file: " + read.error().message);
    token = std::move(*read);
  }
  if (options.server && token) return FoundServer{*options.server, *token};

  const auto [local, passed_over] = rendezvous::local_servers(folders(environment));
  std::string doubt;  // Where nothing was found, what we did not look at may be why.
  for (const auto& why : passed_over) doubt += "; not looked at: " + why;
  if (options.server) {
    const auto found = std::ranges::find_if(
        local, [&](const auto& server) { return is_at(server, *options.server); });
    if (found != local.end() && found->token) return FoundServer{*options.server, *found->token};
    return fail(Errc::InvalidArgument,
                "the token of " + to_string(*options.server) +
                    " is not known: it is no server that you run on this machine without a token "
                    "file; give --token-file" +
                    doubt);
  }
  if (local.empty()) {
    return fail(doubt.empty() ? Errc::NotFound : Errc::InvalidArgument,
                "you run no rendezvous server on this machine: give --server HOST:PORT and "
                "--token-file FILE" +
                    doubt);
  }
  if (local.size() > 1) {
    return fail(Errc::InvalidArgument,
                "you run several rendezvous servers on this machine; give one:" + list_of(local));
  }
  const auto& server = local.front();
  if (!token) token = server.token;
  if (!token) {
    return fail(Errc::InvalidArgument, "the server at " + to_string(server.endpoint) +
                                           " was given its token in a file: give --token-file");
  }
  return FoundServer{server.endpoint, *token};
}

}  // namespace muster::ctl

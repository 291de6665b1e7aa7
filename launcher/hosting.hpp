#pragma once

#include "base/endpoint.hpp"
#include "base/ids.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

/// Which of a job's nodes hosts the rendezvous server, when no standing one answers (protocol.md
/// 6): whoever has the endpoint's address; of several agents on that machine the first to bind.
/// Where no node has it (it is a load balancer's, or behind address translation), the one that the
/// user names. Names are never compared: only addresses are.
namespace muster::launcher {

/// How long a node that has the endpoint's address, but a rank other than 0, looks for a server
/// before it hosts. One that has not the address looks for twice as long, so as to come after it.
constexpr Duration kSilenceBeforeHosting = std::chrono::seconds(2);

enum class Hosting {
  AtOnce,        ///< Binds; where somebody else has bound already, it is that one's.
  AfterSilence,  ///< Only when no server has answered for so long.
  Never,
};

struct HostingFacts {
  bool owns_address = false;          ///< The endpoint is an address of this machine.
  std::optional<bool> is_host;        ///< `--rdzv-conf is_host`.
  std::optional<NodeRank> node_rank;  ///< `--node-rank`.
};

[[nodiscard]] Hosting hosting_of(const HostingFacts& facts);

/// Whether one of the addresses that the endpoint's host stands for is this machine's: loopback, or
/// among `local`. All are numeric; `local` is without loopback.
[[nodiscard]] bool owns(const std::vector<std::string>& addresses,
                        const std::vector<std::string>& local);

/// `localhost` in its usual forms: by RFC 6761 such a name never leaves the machine.
[[nodiscard]] bool is_localhost(const std::string& host);

/// Where the server binds: each of them, or the first that can be had.
struct Binding {
  std::vector<std::string> hosts;
  bool all = false;
};

/// Binds the endpoint's own addresses, loopback where it is asked for by number or as `localhost`;
/// else the wildcard. A name that leads to loopback only here (Debian gives a machine's own name
/// the address 127.0.1.1) leads to a real address on other machines, which is unknown: the wildcard
/// too.
[[nodiscard]] Binding binding_of(const std::string& host, const std::vector<std::string>& addresses,
                                 const std::vector<std::string>& local);

}  // namespace muster::launcher

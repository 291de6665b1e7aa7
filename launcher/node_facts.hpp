#pragma once

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "launcher/options.hpp"

#include <optional>
#include <string>
#include <vector>

/// What a node tells of itself where it meets others, as far as its machine knows.
namespace muster::launcher {

/// The machine id and, under Slurm, the scheduler's name for the node: with the address of the
/// route to the rendezvous behind it, the machine key (protocol.md 1). Containers may share a
/// machine id, or have none.
[[nodiscard]] std::string machine_name(const Environment& environment);

/// A file in /dev/shm that says that a rendezvous server of this job has been at this endpoint
/// since the machine started. Empty in a container, whose /dev/shm is younger than its machine.
[[nodiscard]] std::string marker_path(const Endpoint& endpoint, const std::string& job,
                                      const Environment& environment);

/// `--token-file`: the secret that nodes and server share.
[[nodiscard]] Result<std::optional<std::string>> read_token(const Options& options);

/// `--local-addr` as a number: it must be one of this machine's. Empty where none is given. A name
/// is looked up, which may take its time.
[[nodiscard]] Result<std::string> own_address(const Options& options);

/// Where `--iface` names a network, the first interface that has an address in it takes its place.
[[nodiscard]] Result<void> name_interface(Options& options);

/// The wildcard: of both families where the machine has IPv6.
[[nodiscard]] std::string any_address();

/// What the workers inherit of our environment (NAME=value): without the way to our token, and with
/// the interface that the user named.
[[nodiscard]] std::vector<std::string> workers_base(std::vector<std::string> entries,
                                                    const Options& options);

}  // namespace muster::launcher

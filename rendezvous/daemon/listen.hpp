#pragma once

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "base/posix/fd.hpp"

#include <optional>

namespace muster::rendezvous {

/// Listens where `--listen` says; nullopt or an empty host: all addresses, of both families where
/// the machine has both. A name that has several addresses gives the first that is ours.
[[nodiscard]] Result<posix::Fd> listen_at(const std::optional<Endpoint>& listen);

/// At which a program of this machine reaches a server that listens there.
[[nodiscard]] Endpoint local_endpoint(const Endpoint& bound);

}  // namespace muster::rendezvous

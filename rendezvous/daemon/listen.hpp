#pragma once

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "base/posix/fd.hpp"

#include <optional>
#include <span>

namespace muster::rendezvous {

/// Listens where `--listen` says; nullopt or an empty host: all addresses, of both families where
/// the machine has both. A name that has several addresses gives the first that is ours.
[[nodiscard]] Result<posix::Fd> listen_at(const std::optional<Endpoint>& listen);

/// At the first of these numeric endpoints that is this machine's. A port that is taken there ends
/// the search: it is InvalidArgument, with its holder.
[[nodiscard]] Result<posix::Fd> listen_at_first(std::span<const Endpoint> endpoints);

}  // namespace muster::rendezvous

#pragma once

#include "base/error.hpp"
#include "launcher/options.hpp"

namespace muster::launcher {

/// The ports of rendezvous where none is given, as torchrun has them.
constexpr std::uint16_t kC10dPort = 29400;
constexpr std::uint16_t kStaticPort = 29500;

/// Works out from the flags where the nodes meet, if they have to, and where the store of a lone
/// node is. A job of one node meets nobody unless a c10d endpoint with a port is given:
///
///   --standalone                          alone, on a free port
///   static, at most 1 node                alone; the endpoint, or else the master, is the store's
///   static, more                          meets at the endpoint, or else the master (port 29500);
///                                         the workers' store is there as well
///   c10d, at most 1 node                  meets at the endpoint (port 29400); none, port 0: alone
///   c10d, more                            meets at the endpoint
///
/// Fails where the nodes could never find each other.
[[nodiscard]] Result<void> settle_meeting(Options& options);

/// What the flags about ending workers, and the scheduler around us, add up to.
void settle_stopping(Options& options, const Environment& environment);

}  // namespace muster::launcher

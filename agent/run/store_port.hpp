#pragma once

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "base/posix/fd.hpp"

#include <cstdint>
#include <optional>

namespace muster::agent {

/// Ports that a firewall lets through (`--port-range`), both ends included.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
};

/// The port at which this node would host the store of the next round, reserved before anybody is
/// told of it. Loop thread only.
///
/// Where the agent hosts the store, the reservation listens, since nothing less keeps others from
/// the port; whoever connects meanwhile is turned away when the round begins. Where a worker will
/// listen there (`--worker-store torch`) it is bound only, so that two agents of one machine may
/// take the same one.
class StorePort {
 public:
  struct Settings {
    /// Numeric. Port 0: a free one each round.
    Endpoint at;
    std::optional<PortRange> range;  ///< Where that port is 0.
    bool is_agents = true;           ///< The agent will listen there.
  };

  /// `first`: reserved already, for the first round; none: `reserve` does it.
  StorePort(Settings settings, posix::Fd first);

  /// One socket, as it is reserved. A port that is taken is InvalidArgument.
  [[nodiscard]] static Result<posix::Fd> reserve_at(const Endpoint& at, bool is_agents);

  /// Where it is; a fresh one, unless one is reserved already.
  [[nodiscard]] Result<Endpoint> reserve();
  /// For the store's server. Nobody waits to be accepted.
  [[nodiscard]] posix::Fd take();
  void release() { reserved_.reset(); }

 private:
  Result<posix::Fd> reserve_in_range();

  Settings settings_;
  posix::Fd reserved_;
  std::uint32_t next_offset_ = 0;  // Within the range.
};

}  // namespace muster::agent

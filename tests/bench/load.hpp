#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/posix/socket.hpp"
#include "tests/bench/requests.hpp"

#include <cstdint>
#include <sys/types.h>
#include <vector>

namespace muster::bench {

struct LoadOptions {
  posix::SocketAddress server;
  pid_t server_pid = 0;  ///< Whose processor time is taken.
  Peer peer = Peer::Store;
  Workload workload;
  std::uint32_t connections = 1;
  Duration warm_up{};
  Duration measured{};
  std::uint64_t most_operations = 0;  ///< Ends the measured part early.
};

struct LoadFigures {
  std::uint64_t operations = 0;
  Duration elapsed{};
  Duration server_cpu{};
  Duration own_cpu{};
  std::vector<std::uint32_t>
      latencies;  ///< Nanoseconds, from the write of the request to the read of its reply.
};

/// Keeps `depth` operations in flight on each connection for the time asked, from one thread with
/// epoll. Every reply is verified, during the warm-up too; the first wrong one fails the run.
[[nodiscard]] Result<LoadFigures> run_load(const LoadOptions& options);

}  // namespace muster::bench

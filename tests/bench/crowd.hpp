#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/posix/fd.hpp"
#include "base/posix/socket.hpp"
#include "tests/bench/requests.hpp"

#include <cstdint>
#include <sys/types.h>
#include <vector>

namespace muster::bench {

/// Connections on their way at once: below the backlog of every server here, so that no SYN is
/// dropped and sent again a second later.
inline constexpr std::uint32_t kMostOnTheirWay = 512;

struct Opened {
  Duration elapsed{};
  Duration server_cpu{};
};

struct Woken {
  Duration first{};
  Duration half{};
  Duration all{};
  Duration server_cpu{};
};

/// Very many connections to one server from one thread: how long it takes to open them all, and to
/// wake them all.
class Crowd {
 public:
  Crowd(const posix::SocketAddress& server, pid_t server_pid, Peer peer)
      : server_(server), server_pid_(server_pid), peer_(peer) {}

  /// From the first connect to the last answer. Each connection is greeted, waits for the echo and
  /// then makes one request (ADD on one key: the answers are verified to be 1 to `connections`,
  /// each once).
  [[nodiscard]] Result<Opened> open(std::uint32_t connections);

  /// Lets every connection wait for one key, makes sure that the server knows, and creates the key
  /// on another connection: from that write to the reads of the first, the middle and the last
  /// wake-up. May be called again.
  [[nodiscard]] Result<Woken> wake();

 private:
  struct Member {
    posix::Fd socket;
    std::string received;
    bool greeted = false;
  };

  Result<void> start(Member& member);
  Result<bool> go_on(Member& member);
  Result<void> check_answers() const;
  Result<void> ask_all_to_wait(const std::string& key);
  Result<std::vector<Duration>> wait_for_all(TimePoint begin);
  Result<std::vector<std::uint64_t>> ready();

  posix::SocketAddress server_;
  pid_t server_pid_;
  Peer peer_;
  posix::Fd epoll_;
  std::vector<Member> members_;
  posix::Fd waker_;
  std::uint32_t wakes_ = 0;
};

}  // namespace muster::bench

#pragma once

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/membership.hpp"
#include "base/posix/fd.hpp"
#include "base/posix/socket.hpp"
#include "rendezvous/client/wire.hpp"

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace muster::bench {

/// Thousands of agents without workers, on real connections to one rendezvous server, from one
/// thread: they answer each order at once, as if their workers started and ended in no time, and
/// ping as the protocol wants it. What the server says is checked: one round, each node rank once.
class Swarm {
 public:
  struct Settings {
    Endpoint server;  ///< Numeric.
    std::string job;
    std::uint32_t nodes = 1;  ///< The most of the job; it may go on with one fewer.
    Duration lease{};
  };

  [[nodiscard]] static Result<Swarm> make(Settings settings);

  /// When it began to happen to the first, and when to the last of those whom it concerned.
  struct Span {
    Duration first{};
    Duration last{};
  };

  /// So many more agents dial, at most kMostOnTheirWay at once. From the first connect until
  /// `nodes` agents have an Assignment of one round that is new to all.
  [[nodiscard]] Result<Span> join(std::uint32_t agents, std::uint32_t nodes);

  /// Goes on until every agent of the round knows that the master's store listens (MasterUp), and
  /// has said that its workers run.
  [[nodiscard]] Result<void> start();

  /// One more agent dials that the job has no place for, until the server has said so.
  [[nodiscard]] Result<void> stand_by();

  /// Nothing but pings for so long.
  [[nodiscard]] Result<void> rest(Duration time);

  struct Parted {
    Span stopped;   ///< Stop at the survivors.
    Span assigned;  ///< Their next Assignment.
  };
  /// An agent is gone: its connection is closed, and its farewell said. Times are from then.
  [[nodiscard]] Result<Parted> lose_one(std::uint32_t nodes);

  struct Bytes {
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
  };
  /// Of each agent of the round so far, in the middle and at the most, the one of node rank 0 left
  /// out: that one alone is told of all nodes.
  [[nodiscard]] Bytes middle_bytes() const;
  [[nodiscard]] Bytes most_bytes() const;

 private:
  struct Agent {
    posix::Fd socket;
    std::string received;
    std::string secret;
    RoundId assigned;
    RoundId started;
    RoundId stopped;
    NodeRank node_rank;
    std::uint64_t pings = 1;  // Hello counts as one.
    Bytes bytes;
    bool greeted = false;
    bool waits = false;
  };
  /// What has happened in the newest round.
  struct Progress {
    RoundId round;
    std::uint32_t assigned = 0;
    std::uint32_t started = 0;
    TimePoint first_assigned, last_assigned;
    RoundId stop;
    std::uint32_t stopped = 0;
    TimePoint first_stopped, last_stopped;
  };

  explicit Swarm(Settings settings) : settings_(std::move(settings)) {}

  [[nodiscard]] Hello hello_of(std::uint32_t index) const;
  Result<void> dial(std::uint32_t index);
  Result<void> turn(TimePoint until);
  Result<void> send_due_pings();
  Result<void> take(Agent& agent);
  Result<void> take_frame(Agent& agent, const rendezvous::ServerFrame& frame);
  Result<void> obey(Agent& agent, const Order& order);
  Result<void> say(Agent& agent, const rendezvous::ClientFrame& frame);
  Result<void> wait_for_round(RoundId above, std::uint32_t nodes);
  [[nodiscard]] Result<void> check_ranks(std::uint32_t nodes) const;
  [[nodiscard]] std::vector<std::uint64_t> figures(std::uint64_t Bytes::* which) const;

  Settings settings_;
  posix::SocketAddress address_{};
  posix::Fd epoll_;
  std::vector<Agent> agents_;
  std::uint32_t greeted_ = 0;
  Progress progress_;
  std::size_t next_ping_ = 0;  // Agents ping one after the other, evenly spread over the interval.
  TimePoint ping_at_{};
};

}  // namespace muster::bench

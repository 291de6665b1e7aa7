#pragma once

#include "base/membership.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

/// What operators see of a job and may ask of it. Plain values.
namespace muster::rendezvous {

using LinkId = Strong<struct LinkIdTag, std::uint64_t>;        ///< A connection. Never used twice.
using CommandId = Strong<struct CommandIdTag, std::uint64_t>;  ///< An operator's call.

/// How far the workers of a node are, those that tell it (docs/reference/beacon.md).
struct NodeProgress {
  std::uint64_t slowest = 0;  ///< The step of the worker that is behind.
  std::uint64_t fastest = 0;
  std::string phase;  ///< Of the slowest; may be empty.
  Duration quiet{};   ///< The longest time since a worker's beacon changed.
};

struct NodeView {
  std::string name;
  std::string machine;
  std::string address;  ///< That its connection comes from.
  Incarnation incarnation;
  std::string
      state;  ///< One of: joining, running, stopping, succeeded, spare, leaving, silent, excluded.
  std::string reason;                 ///< Why it is in no round, where there is one.
  std::optional<NodeRank> node_rank;  ///< In the running round.
  std::uint32_t slots = 0;
  std::optional<Duration> silent_for;  ///< Since its last ping.
  std::optional<NodeProgress> progress;
};

struct JobView {
  std::string id;
  std::string phase;  ///< gathering, last call, running, draining, stopping, recovering, succeeded,
                      ///< failed, closed.
  std::string reason;  ///< Why nothing is happening, or why it ended so.
  std::optional<RoundId> round;
  std::uint32_t attempt = 0;
  std::uint32_t restarts = 0;
  JobSettings settings;
  std::uint32_t world_size = 0;
  std::optional<std::uint64_t> step;  ///< The highest in the running round, where workers tell.
  std::vector<NodeView> nodes;
  std::optional<Verdict> verdict;
};

/// What an operator may ask. Each is safe to repeat; `round`, where given, is the round that the
/// operator believes in: another one makes the command stale.
struct DrainNode {
  std::string node;  ///< Its name, address, node rank, machine key or incarnation; must be one.
  std::optional<RoundId> round;
};
struct RestartJob {
  std::optional<RoundId> round;
};
struct StopJob {
  std::optional<RoundId> round;
};
struct SetSizes {
  std::uint32_t min = 1;
  std::uint32_t max = 1;
  std::optional<RoundId> round;
};
using Command = std::variant<DrainNode, RestartJob, StopJob, SetSizes>;

}  // namespace muster::rendezvous

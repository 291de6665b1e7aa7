#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

/// Many nodes, their agents, keepers and workers, one rendezvous server and the network between
/// them, in virtual time and by a seeded schedule of faults (design.md 9). The cores are the real
/// ones: Rendezvous, Attendee and WorkerGroup. What is simulated is everything around them.
namespace muster::sim {

/// A simpler rule of protocol.md 9, planted by what surrounds the cores, to show that the checks
/// find it.
enum class Planted {
  Nothing,
  LeaseRenewedByAnything,
  GraceAtLeaseEnd,
  ClosedIsDead,
  KeeperJudgesByTick,
  LeaseCheckedBeforeForkOnly,
  OrdersFromAnyConnection,
  NoRecovery,
  FormsWhenReportedMembersAreBack,
  BareEpochs,
  RecoveryOfOneLease,
  RecoveryFromProcessStart,
  FirstFailureIsTheCause,
  VerdictAndOut,
  IdFreeAtOnce,
  FarewellOfTheKnownOnly,
  KeeperIsTheAgentsChild,
};

struct Outcome {
  std::string broken;  ///< The first rule that broke, and when; empty: none.
  // For the figures: what the schedule had.
  unsigned rounds = 0;
  unsigned faults = 0;
  unsigned servers = 0;
  bool ended = false;  ///< Some agent was told a verdict.
};

/// Runs one schedule to its end. `trace`, where given, is told everything.
[[nodiscard]] Outcome simulate(std::uint64_t seed, Planted planted, std::ostream* trace = nullptr);

}  // namespace muster::sim

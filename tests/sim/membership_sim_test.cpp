// Rendezvous, Attendee and WorkerGroup, joined in virtual time by a network that delays, cuts and
// resets, with keepers and workers as parties, clocks that differ by 10 %, stalls and deaths of
// everybody.
//
//   MUSTER_SEED=7 membership_sim_test        repeats one schedule and tells all of it
//   MUSTER_SCHEDULES=300000 membership_sim_test   more of them, from MUSTER_FIRST (1) on

#include "tests/sim/membership_sim.hpp"

#include <array>
#include <cstdlib>
#include <iostream>
#include <optional>

#include <catch2/catch.hpp>

using namespace muster::sim;

namespace {

constexpr std::uint64_t kSchedules = 10'000;
/// Within so many schedules each planted fault is found.
constexpr std::uint64_t kMostUntilFound = 60'000;

std::optional<std::uint64_t> number_from(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  return std::strtoull(text, nullptr, 10);
}

struct PlantedRule {
  Planted fault;
  const char* rule;
  const char* shows;   ///< By which it must be found.
  std::uint64_t from;  ///< The first seed that finds it; a change of the cores may move it.
};
constexpr const char* kTwoRounds = "ran on node";
constexpr std::array<PlantedRule, 16> kSimplerRules = {{
    {Planted::LeaseRenewedByAnything, "the lease is renewed by anything heard", kTwoRounds, 1666},
    {Planted::GraceAtLeaseEnd, "the workers have the grace at the lease's end", kTwoRounds, 211},
    {Planted::ClosedIsDead, "a closed connection is a dead agent", kTwoRounds, 104},
    {Planted::KeeperJudgesByTick, "the keeper judges by the agent's tick", kTwoRounds, 299},
    {Planted::LeaseCheckedBeforeForkOnly, "the lease is checked before the fork only", kTwoRounds,
     299},
    {Planted::OrdersFromAnyConnection, "orders are taken from any connection, of any round",
     kTwoRounds, 98},
    {Planted::NoRecovery, "a round forms as soon as enough are there after a server's restart",
     kTwoRounds, 104},
    {Planted::FormsWhenReportedMembersAreBack,
     "a round forms when the members of the reported round are back", kTwoRounds, 3433},
    {Planted::BareEpochs, "epochs are a bare counter", "was named twice", 116},
    {Planted::RecoveryOfOneLease, "recovery lasts one lease", kTwoRounds, 1262},
    {Planted::RecoveryFromProcessStart, "recovery is counted from the process's start", kTwoRounds,
     1160},
    {Planted::FirstFailureIsTheCause, "the first failure to arrive is the cause",
     "no worker's failure explains", 37},
    {Planted::VerdictAndOut, "an agent leaves when it has heard the verdict",
     "formed after the verdict", 3760},
    {Planted::IdFreeAtOnce, "an id is free at once", "formed after the verdict", 110},
    {Planted::FarewellOfTheKnownOnly, "a farewell counts only where the Hello is known",
     "survivors of a farewell", 45554},
    {Planted::KeeperIsTheAgentsChild, "the keeper is the agent's child", kTwoRounds, 85},
}};

}  // namespace

TEST_CASE("in every schedule each rank has one holder, and the job runs or ends",
          "[sim][membership]") {
  if (const auto seed = number_from("MUSTER_SEED")) {
    const auto outcome = simulate(*seed, Planted::Nothing, &std::cerr);
    CHECK(outcome.broken == "");
    return;
  }
  std::uint64_t rounds = 0;
  std::uint64_t servers = 0;
  std::uint64_t faults = 0;
  std::uint64_t ended = 0;
  const auto schedules = number_from("MUSTER_SCHEDULES").value_or(kSchedules);
  const auto first = number_from("MUSTER_FIRST").value_or(1);
  for (std::uint64_t seed = first; seed < first + schedules; ++seed) {
    const auto outcome = simulate(seed, Planted::Nothing);
    INFO("MUSTER_SEED=" << seed << " repeats it");
    CHECK(outcome.broken == "");
    rounds += outcome.rounds;
    servers += outcome.servers;
    faults += outcome.faults;
    ended += outcome.ended ? 1 : 0;
  }
  std::cout << schedules << " schedules: " << rounds << " rounds, " << servers << " servers, "
            << faults << " faults, " << ended << " verdicts\n";
  // A simulation in which nothing happens would find nothing.
  CHECK(rounds > schedules);
  CHECK(servers > schedules);
  CHECK(ended > schedules / 2);
}

TEST_CASE("each simpler rule of protocol.md 9 that is planted is found", "[sim][membership]") {
  for (const auto& [fault, rule, shows, from] : kSimplerRules) {
    std::uint64_t seed = from;
    std::string broken;
    for (; seed < from + kMostUntilFound; ++seed) {
      broken = simulate(seed, fault).broken;
      if (broken.find(shows) != std::string::npos) break;
    }
    INFO("planted: " << rule);
    CHECK(seed < from + kMostUntilFound);
    std::cout << rule << ": seed " << seed << ": " << broken << "\n";
  }
}

#include "tests/agent/group_sim.hpp"

#include <catch2/catch.hpp>

using namespace muster;
using namespace muster::agent;
using namespace std::chrono_literals;

TEST_CASE("before the machine is taken away the workers are asked to save, once",
          "[agent][group]") {
  GroupSim sim(3, 30s, SIGUSR1);
  sim.assign(1);
  sim.feed(Group::PrepareOrdered{{{1, 1}, "drained", 30s}});
  CHECK(sim.signalled == Signals{{0, SIGUSR1}, {1, SIGUSR1}, {2, SIGUSR1}});
  CHECK(sim.told == std::vector{Group::TellWorkers::Word::CheckpointNow});
  sim.feed(Group::PrepareOrdered{{{1, 1}, "drained", 20s}});
  CHECK(sim.signalled.size() == 3);
  sim.exit(1, {});
  sim.exit(0, {.signal = SIGUSR1});
  CHECK(sim.saving == std::vector<std::uint32_t>{3, 3, 2, 1});
}

TEST_CASE("a worker whose beacon tells of a checkpoint since it was asked has saved",
          "[agent][group]") {
  GroupSim sim(3);
  sim.assign(1);
  sim.feed(Group::BeaconHeard{0, 4, false});  // Saves now and then.
  sim.feed(Group::BeaconHeard{1, 0, true});   // Looks for requests.
  sim.feed(Group::BeaconHeard{2, 0, false});  // Only tells its steps: it would not save.
  CHECK(sim.saving.empty());
  sim.feed(Group::PrepareOrdered{{{1, 1}, "drained", 30s}});
  sim.feed(Group::BeaconHeard{0, 4, false});
  CHECK(sim.saving == std::vector<std::uint32_t>{2});
  sim.feed(Group::BeaconHeard{0, 5, false});
  sim.feed(Group::BeaconHeard{0, 6, false});
  CHECK(sim.saving == std::vector<std::uint32_t>{2, 1});
  sim.feed(Group::BeaconHeard{1, 1, true});
  CHECK(sim.saving == std::vector<std::uint32_t>{2, 1, 0});
  for (std::uint32_t index = 0; index < 2; ++index) sim.exit(index, {});
  CHECK(sim.reports == Reports{"started"});  // They have not finished.
}

TEST_CASE("a worker that gets a signal has saved also when its beacon says so", "[agent][group]") {
  GroupSim sim(2, 30s, SIGUSR1);
  sim.assign(1);
  sim.feed(Group::PrepareOrdered{{{1, 1}, "drained", 30s}});
  sim.feed(Group::BeaconHeard{1, 1, false});
  CHECK(sim.saving == std::vector<std::uint32_t>{2, 1});
}

TEST_CASE("what a beacon told in one round says nothing in the next", "[agent][group]") {
  GroupSim sim(1);
  sim.assign(1);
  sim.feed(Group::BeaconHeard{0, 4, true});
  sim.stop(1);
  sim.exit(0, {.signal = SIGTERM});
  sim.assign(2);
  sim.feed(Group::PrepareOrdered{{{1, 2}, "drained", 30s}});
  CHECK(sim.saving == std::vector<std::uint32_t>{0});
}

TEST_CASE("a worker that saved and left has neither failed nor finished", "[agent][group]") {
  GroupSim sim(2, 30s, SIGUSR1);
  sim.assign(1);
  sim.feed(Group::PrepareOrdered{{{1, 1}, "drained", 30s}});
  sim.exit(0, {});
  sim.exit(1, {.signal = SIGUSR1});
  CHECK(sim.reports == Reports{"started"});
  sim.stop(1);
  CHECK(sim.reports == Reports{"started", "empty"});
}

TEST_CASE("a worker that is killed by the system while it should save has failed",
          "[agent][group]") {
  GroupSim sim(1, 30s, SIGUSR1);
  sim.assign(1);
  sim.feed(Group::PrepareOrdered{{{1, 1}, "drained", 30s}});
  sim.exit(0, {.signal = SIGKILL}, Cause::OutOfMemory);
  CHECK(sim.reports == Reports{"started", "failed 0"});
}

TEST_CASE("how a worker leaves that was asked to save is its own affair", "[agent][group]") {
  GroupSim sim(2, 30s, SIGUSR1);
  sim.assign(1);
  sim.feed(Group::PrepareOrdered{{{1, 1}, "drained", 30s}});
  sim.exit(0, {.code = 1});
  sim.exit(1, {.code = 1}, Cause::PeerLoss);
  CHECK(sim.reports == Reports{"started"});
  CHECK(sim.saving == std::vector<std::uint32_t>{2, 1, 0});
}

TEST_CASE("without a signal that asks the workers to save nobody waits for that",
          "[agent][group]") {
  GroupSim sim(1);
  sim.assign(1);
  sim.feed(Group::PrepareOrdered{{{1, 1}, "drained", 30s}});
  CHECK(sim.signalled.empty());
  CHECK(sim.told.size() == 1);
  sim.exit(0, {});
  CHECK(sim.saving == std::vector<std::uint32_t>{0, 0});
  CHECK(sim.reports == Reports{"started", "succeeded", "empty"});
}

#include "tests/rendezvous/core/job_harness.hpp"

#include <csignal>

#include <catch2/catch.hpp>

// What operators ask.

using namespace muster;
using namespace muster::rendezvous;
using namespace std::chrono_literals;
using test::nodes;
using test::running;
using test::Sim;

TEST_CASE("a drained node leaves, free of charge, and is not taken again",
          "[rendezvous][job][command]") {
  Sim sim(nodes(1, 3));
  running(sim, {"a", "b", "c"});
  const auto called = GENERATE(as<std::string>(), "b", "10.0.0.2", "1", "machine-b");
  REQUIRE(sim.command(DrainNode{called, sim["a"].round()}));
  CHECK(sim["a"].prepares.size() == 1);
  CHECK(sim["b"].hello.held.kept.drained);
  CHECK_FALSE(sim["a"].hello.held.kept.drained);
  for (const auto* name : {"a", "b", "c"}) sim.say(name, Saving{sim[name].round(), 0});
  const auto again = sim.command(DrainNode{sim["b"].hello.incarnation.value, {}});
  REQUIRE(again);
  CHECK(again->find("leaves already") != std::string::npos);
  sim.advance(1s);
  CHECK(sim["a"].assignment().nodes == 2);
  CHECK(sim["a"].assignment().restarts == 0);
  CHECK(sim["b"].verdict->exit_code == 75);
}

TEST_CASE("a name that is several nodes' drains none", "[rendezvous][job][command]") {
  Sim sim(nodes(2, 2));
  for (const auto* name : {"a", "b"}) {
    sim.add(name).hello.machine = "same";
    sim.greet(name);
  }
  const auto outcome = sim.command(DrainNode{"same", {}});
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::InvalidArgument);
  CHECK(outcome.error().message.find("a (10.0.0.1") != std::string::npos);
  CHECK(outcome.error().message.find("b (10.0.0.2") != std::string::npos);
  CHECK(sim.command(DrainNode{"nobody", {}}).error().code == Errc::NotFound);
  CHECK(sim["a"].stops.empty());
}

TEST_CASE("a restart is free, and done once for one round", "[rendezvous][job][command]") {
  Sim sim(nodes(2, 2));
  running(sim, {"a", "b"});
  const auto round = sim["a"].round();
  REQUIRE(sim.command(RestartJob{round}));
  CHECK(sim["a"].assignments.size() == 2);
  CHECK(sim["a"].assignment().restarts == 0);
  const auto again = sim.command(RestartJob{round});
  REQUIRE_FALSE(again);
  CHECK(again.error().code == Errc::Stale);
  CHECK(sim.command(StopJob{round}).error().code == Errc::Stale);
  CHECK(sim.command(SetSizes{1, 1, round}).error().code == Errc::Stale);
  CHECK(sim["a"].assignments.size() == 2);
}

TEST_CASE("a stopped job ends everywhere", "[rendezvous][job][command]") {
  Sim sim(nodes(2, 2, 5));
  running(sim, {"a", "b"});
  sim["b"].slow = true;
  REQUIRE(sim.command(StopJob{}));
  REQUIRE(sim.command(StopJob{}));
  sim.fail("b", {.signal = SIGTERM});
  sim.empty("b");
  REQUIRE(sim["a"].verdict);
  CHECK(sim["a"].verdict->exit_code == 128 + SIGTERM);
  CHECK(sim["a"].verdict->summary == "an operator stopped the job");
  CHECK_FALSE(sim["a"].verdict->cause);
  REQUIRE(sim.command(StopJob{}));
}

TEST_CASE("sizes can be set by hand", "[rendezvous][job][command]") {
  Sim sim(nodes(2, 2));
  running(sim, {"a", "b", "c"});
  CHECK(sim["c"].assignments.empty());
  SECTION("larger: spares are taken in") {
    REQUIRE(sim.command(SetSizes{2, 3}));
    sim.advance(500ms);
    CHECK(sim["c"].assignment().nodes == 3);
    CHECK(sim["c"].hello.held.kept.sizes == std::pair{2U, 3U});
  }
  SECTION("smaller: the round is stopped") {
    REQUIRE(sim.command(SetSizes{1, 1}));
    CHECK(sim["a"].assignments.size() + sim["b"].assignments.size() == 3);
  }
  SECTION("nonsense is refused") {
    const auto outcome = sim.command(SetSizes{3, 2});
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::InvalidArgument);
  }
}

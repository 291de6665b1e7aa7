#include "tests/rendezvous/core/job_harness.hpp"

#include <csignal>

#include <catch2/catch.hpp>

// What a server says again to an agent that has lost its connection, and learns again when it has
// lost its memory.

using namespace muster;
using namespace muster::rendezvous;
using namespace std::chrono_literals;
using test::back;
using test::nodes;
using test::running;
using test::short_recovery;
using test::Sim;

TEST_CASE("a node that missed its leave is told it again", "[rendezvous][again]") {
  Sim sim(nodes(1, 3));
  running(sim, {"a", "b", "c"});
  sim["b"].slow = true;
  sim.say("b", Leaving{SIGTERM});
  sim.empty("b");
  sim.drop("b");
  sim.advance(1s);  // The leavers' second.
  CHECK(sim["a"].assignment().nodes == 2);
  CHECK_FALSE(sim["b"].verdict);
  back(sim, "b");
  REQUIRE(sim["b"].verdict);
  CHECK(sim["b"].verdict->alone);
  CHECK(sim["b"].verdict->exit_code == 128 + SIGTERM);
  sim.say("b", VerdictSeen{});
  CHECK(sim["b"].dismissed);
}

TEST_CASE("with its Assignment a node is told again that the master is up, and that all save",
          "[rendezvous][again]") {
  Sim sim(nodes(2, 2));
  sim.join("a");
  sim["a"].slow = true;
  sim.join("b");
  sim.drop("b");
  auto lost = sim["b"].hello.held;
  lost.round.reset();
  lost.highest = {};
  sim.start("a");
  sim.say("a", Notice{"spot", 30s});
  sim["b"].hello.held = lost;  // It never got it.
  sim["b"].master_up = false;
  sim["b"].prepares.clear();
  sim.greet("b");
  CHECK(sim["b"].assignments.size() == 2);
  CHECK(sim["b"].master_up);
  CHECK(sim["b"].prepares.size() == 1);
}

TEST_CASE("a node that says twice that it reaches no store is one", "[rendezvous][again]") {
  Sim sim(nodes(2, 3));
  for (auto name : {"a", "b", "c"}) sim.join(name);
  sim["a"].slow = sim["b"].slow = sim["c"].slow = true;
  const auto round = sim["b"].round();
  sim.say("b", Unreachable{round, "b to a: timed out"});
  sim.say("b", Unreachable{round, "b to a: timed out"});
  for (auto name : {"a", "b", "c"}) sim.empty(name);
  CHECK(sim.state_of("b") == "excluded");
  CHECK(sim["a"].assignments.size() == 2);
}

TEST_CASE("a node that was silent when the round formed is taken in when it is heard again",
          "[rendezvous][again]") {
  Sim sim(nodes(1, 3));
  sim.join("a");
  sim.join("b");
  sim.join("c");
  REQUIRE(sim["a"].assignment().nodes == 3);
  sim.advance(61s);
  sim.freeze("c");
  sim.advance(6s);
  REQUIRE(sim.command(RestartJob{}));  // Of which it hears nothing: it holds the round still.
  sim["c"].slow = true;
  sim.empty("c");
  sim.advance(2s);
  REQUIRE(sim["a"].assignment().nodes == 2);
  sim["c"].slow = false;
  sim["c"].pings = true;
  const bool by_hello = GENERATE(true, false);
  if (by_hello) {
    sim.drop("c");
    sim.greet("c");
  }
  sim.ping("c");
  sim.advance(500ms);
  CHECK(sim["c"].assignment().nodes == 3);
  CHECK(sim["a"].assignment().nodes == 3);
}

TEST_CASE("who came to a new server before the running round did is taken in after recovery",
          "[rendezvous][again]") {
  Sim sim(nodes(1, 2), short_recovery());
  running(sim, {"a"});
  sim.restart_server();
  sim.join("c");
  back(sim, "a");
  sim.advance(13s);
  CHECK(sim["a"].assignment().nodes == 2);
  CHECK(sim["c"].assignment().nodes == 2);
}

TEST_CASE("a drained node stays drained over a restart of the server", "[rendezvous][again]") {
  Sim sim(nodes(1, 2), short_recovery());
  running(sim, {"a", "b"});
  REQUIRE(sim.command(DrainNode{"b", {}}));  // All workers save.
  sim.restart_server();
  back(sim, "a");
  back(sim, "b");
  sim.advance(31s);
  CHECK(sim["a"].assignment().nodes == 1);
  CHECK(sim["b"].assignments.size() == 1);
  REQUIRE(sim["b"].verdict);
  CHECK(sim["b"].verdict->alone);
}

TEST_CASE("sizes that were set while a round ran survive the server", "[rendezvous][again]") {
  Sim sim(nodes(1, 2), short_recovery());
  running(sim, {"a", "b"});
  REQUIRE(sim.command(SetSizes{1, 4}));
  CHECK(sim["a"].assignments.size() == 1);
  sim.restart_server();
  back(sim, "a");
  CHECK(sim.view().settings.max_nodes == 4);
  sim.join("c");
  CHECK(sim["c"].hello.held.kept.sizes == std::pair{1U, 4U});
}

TEST_CASE("a job that an operator stopped does not go on under the next server",
          "[rendezvous][again]") {
  Sim sim(nodes(2, 2, 5), short_recovery());
  running(sim, {"a", "b"});
  for (auto name : {"a", "b"}) sim[name].slow = true;
  REQUIRE(sim.command(StopJob{}));
  sim.restart_server();
  for (auto name : {"a", "b"}) sim[name].slow = false;
  for (auto name : {"a", "b"}) back(sim, name);
  sim.advance(13s);
  for (auto name : {"a", "b"}) {
    CHECK(sim[name].assignments.size() == 1);
    REQUIRE(sim[name].verdict);
    CHECK(sim[name].verdict->exit_code == 128 + SIGTERM);
  }
}

TEST_CASE("sizes that no job may have are not taken from an agent", "[rendezvous][again]") {
  Sim sim(nodes(1, 2), short_recovery());
  auto& agent = sim.add("a");
  agent.hello.held.round = agent.hello.held.highest = {1, 1};
  agent.hello.held.empty = true;
  agent.hello.held.kept.sizes = GENERATE(std::pair{0U, 0U}, std::pair{3U, 2U});
  sim.greet("a");
  sim.advance(13s);
  CHECK(sim.view().settings.max_nodes == 2);
  CHECK(sim["a"].assignment().nodes == 1);
}

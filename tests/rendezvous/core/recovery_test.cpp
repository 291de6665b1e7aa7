#include "tests/rendezvous/core/job_harness.hpp"

#include <csignal>

#include <catch2/catch.hpp>

using namespace muster;
using namespace muster::rendezvous;
using namespace std::chrono_literals;
using test::back;
using test::nodes;
using test::running;
using test::short_recovery;
using test::Sim;

TEST_CASE("a running round is not disturbed by the server's restart", "[rendezvous][recovery]") {
  Sim sim(nodes(2, 2), short_recovery());
  running(sim, {"a", "b"});
  const auto round = sim["a"].round();
  sim.restart_server(3s);
  back(sim, "a");
  CHECK(sim.view().phase == "running");
  back(sim, "b");
  sim.advance(60s);
  CHECK(sim["a"].stops.empty());
  CHECK(sim["a"].assignments.size() == 1);
  CHECK(sim.view().round == round);
  sim.succeed("a");
  sim.succeed("b");
  CHECK(sim["b"].verdict->exit_code == 0);
  CHECK(sim["b"].verdict->attempts == 1);
}

TEST_CASE("newcomers that dial first start no second round beside the running one",
          "[rendezvous][recovery]") {
  Sim sim(nodes(1, 2), short_recovery());
  running(sim, {"a", "b"});
  sim.restart_server();
  for (auto name : {"a", "b"}) sim.freeze(name);
  sim.join("c");
  sim.join("d");
  sim.advance(12499ms);
  CHECK(sim["c"].assignments.empty());
  CHECK(sim["c"].waits.back().find("just started") != std::string::npos);
  SECTION("until nobody can run it any more") {
    sim.advance(1ms);
    CHECK(sim["c"].assignment().nodes == 2);
  }
  SECTION("which goes on when its members come") {
    for (auto name : {"a", "b"}) {
      sim["c"].slow = true;
      back(sim, name);
      sim[name].pings = true;
    }
    sim.advance(60s);
    CHECK(sim["c"].assignments.empty());
    CHECK(sim["a"].stops.empty());
    CHECK(sim.state_of("c") == "spare");
  }
}

TEST_CASE("recovery is counted from the bind, by the longest lease that the server admits",
          "[rendezvous][recovery]") {
  auto settings = short_recovery();
  settings.max_lease = 60s;
  settings.bound_at = TimePoint{} + 1ms;
  Sim sim(nodes(1, 1), settings);
  sim.join("a");
  sim.advance(75s);
  CHECK(sim["a"].assignments.empty());
  sim.advance(1ms);
  CHECK(sim["a"].assignments.size() == 1);
}

TEST_CASE("a failure that the old server did not live to hear of is charged by the new one",
          "[rendezvous][recovery]") {
  Sim sim(nodes(2, 2, 1), short_recovery());
  running(sim, {"a", "b"});
  const auto old = sim["a"].round();
  sim.restart_server();
  sim["a"].hello.held.failures.push_back(
      {.rank = {0}, .node_rank = {0}, .status = ExitStatus{.code = 3}});
  back(sim, "a");
  CHECK(sim["a"].stops.size() == 1);
  back(sim, "b");  // All are back, and b had not said empty before: no later round can exist.
  REQUIRE(sim["b"].assignments.size() == 2);
  CHECK(sim["b"].assignment().restarts == 1);
  CHECK(sim["b"].assignment().attempt == 1);
  CHECK(sim["b"].round() > old);
}

TEST_CASE("the next round forms early when every member is back with its lease unbroken",
          "[rendezvous][recovery]") {
  Sim sim(nodes(1, 3), short_recovery());
  running(sim, {"a", "b", "c"});
  sim["c"].alive = false;  // Which nobody knows yet.
  sim.restart_server();
  back(sim, "a");
  back(sim, "b");
  sim.fail("a", {.code = 1}, Cause::PeerLoss);
  CHECK(sim["a"].assignments.size() == 1);
  SECTION("or said farewell") { sim.farewell("c"); }
  SECTION("or was named as gone in a Stop") {
    sim["b"].hello.held.gone = {sim["c"].hello.incarnation};
    back(sim, "b");
  }
  CHECK(sim["a"].assignments.size() == 2);
  CHECK(sim["a"].assignment().restarts == 0);
}

TEST_CASE("a lease that was broken since the Assignment waits for recovery's end",
          "[rendezvous][recovery]") {
  Sim sim(nodes(1, 2), short_recovery());
  running(sim, {"a", "b"});
  sim.restart_server();
  back(sim, "a");
  sim["b"].hello.held.unbroken = false;
  sim["b"].hello.held.empty = true;
  back(sim, "b");
  sim.advance(12499ms);
  CHECK(sim["a"].assignments.size() == 1);
  sim.advance(1ms);
  CHECK(sim["a"].assignments.size() == 2);
  CHECK(sim["a"].assignment().restarts == 0);
}

TEST_CASE("where all had said empty a later round may run: recovery is waited out",
          "[rendezvous][recovery]") {
  Sim sim(nodes(1, 2), short_recovery());
  running(sim, {"a", "b"});
  sim.restart_server();
  for (auto name : {"a", "b"}) {
    sim[name].hello.held.empty = sim[name].hello.held.stopped = true;
    back(sim, name);
  }
  sim.advance(12499ms);
  CHECK(sim["a"].assignments.size() == 1);
  sim.advance(1ms);
  CHECK(sim["a"].assignments.size() == 2);
}

TEST_CASE("a round that somebody was only told the end of is not the highest one's death",
          "[rendezvous][recovery]") {
  Sim sim(nodes(1, 2), short_recovery());
  running(sim, {"a", "b"});
  sim.restart_server();
  sim["a"].hello.held.highest.number += 1;  // A Stop of a later round came to it.
  back(sim, "a");
  back(sim, "b");
  sim.fail("b", {.code = 1}, Cause::PeerLoss);
  sim.advance(12499ms);
  CHECK(sim["b"].assignments.size() == 1);
}

TEST_CASE("holders of a lower round are stopped, the highest goes on", "[rendezvous][recovery]") {
  Sim sim(nodes(1, 3), short_recovery());
  running(sim, {"a", "b", "c"});
  sim["c"].slow = true;
  auto stale = sim["c"].hello;
  sim.farewell("c");
  const auto high = sim["a"].round();
  sim.restart_server();
  const bool low_first = GENERATE(true, false);
  auto& old = sim.add("old");
  old.slow = true;
  old.pings = false;  // For the checker: its workers are dead, only the word is not out.
  old.hello.held = stale.held;
  old.assignments = sim["c"].assignments;
  if (low_first) {
    back(sim, "old");
    CHECK(old.stops.empty());
  }
  back(sim, "a");
  back(sim, "b");
  if (!low_first) back(sim, "old");
  REQUIRE(old.stops.size() == 1);
  CHECK(old.stops[0].round == stale.held.round);
  CHECK(sim["a"].stops.size() == 1);  // The one for c.
  CHECK(sim.view().round == high);
}

TEST_CASE("members that have not come back by the end of recovery are lost",
          "[rendezvous][recovery]") {
  Sim sim(nodes(1, 3), short_recovery());
  running(sim, {"a", "b", "c"});
  sim.restart_server();
  sim.freeze("c");
  back(sim, "a");
  back(sim, "b");
  sim.advance(12499ms);
  CHECK(sim["a"].stops.empty());
  sim.advance(1ms);
  REQUIRE(sim["a"].stops.size() == 1);
  CHECK(sim["a"].assignment().nodes == 2);
  CHECK(sim["a"].assignment().restarts == 0);
}

TEST_CASE("the first server at its endpoint need not recover when max is there",
          "[rendezvous][recovery]") {
  auto settings = short_recovery();
  settings.first_here = true;
  settings.bound_at = TimePoint{} + 1ms;
  Sim sim(nodes(1, 2), settings);
  sim.join("a");
  sim.advance(5s);
  CHECK(sim["a"].assignments.empty());  // Min for 2 s is not enough.
  SECTION("max is there") {
    sim.join("b");
    CHECK(sim["a"].assignment().nodes == 2);
  }
  SECTION("but somebody was told of a round") {
    sim.add("b").hello.held.highest = {99, 1};
    sim.greet("b");
    CHECK(sim["a"].assignments.empty());
  }
}

TEST_CASE("rounds of a new server are above any heard of", "[rendezvous][recovery]") {
  auto settings = short_recovery();
  Sim sim(nodes(1, 1), settings);
  sim.add("a").hello.held.highest = {(77ULL << 32U) | 0xFFFFFFFFU, 12};
  sim.greet("a");
  CHECK(sim["a"].round().epoch >> 32U == 78);
  CHECK((sim["a"].round().epoch & 0xFFFFFFFFU) == 7);
}

TEST_CASE("a farewell counts also where the Hello is unknown", "[rendezvous][recovery]") {
  Sim sim(nodes(1, 2), short_recovery());
  running(sim, {"a", "b"});
  sim.restart_server();
  sim["a"].slow = true;
  SECTION("before the job is known") {
    sim.farewell("b");
    sim["a"].slow = false;
    back(sim, "a");
    sim.fail("a", {.code = 1}, Cause::PeerLoss);
  }
  SECTION("and after") {
    sim["a"].slow = false;
    back(sim, "a");
    sim.farewell("b");
    sim.fail("a", {.code = 1}, Cause::PeerLoss);
  }
  CHECK(sim["a"].assignments.size() == 2);
  CHECK(sim["a"].assignment().nodes == 1);
}

TEST_CASE("the verdict survives the server: who knows it tells it", "[rendezvous][recovery]") {
  Sim sim(nodes(2, 2), short_recovery());
  running(sim, {"a", "b"});
  sim["b"].slow = true;
  sim.succeed("b");
  sim.freeze("b");
  sim["b"].alive = false;  // The verdict does not arrive.
  sim["a"].slow = true;
  sim.succeed("a");
  REQUIRE(sim["a"].verdict);
  CHECK_FALSE(sim["b"].verdict);
  sim.restart_server();
  sim["b"].alive = true;
  sim["b"].hello.held.empty = sim["b"].hello.held.succeeded = true;
  const bool knower_first = GENERATE(true, false);
  back(sim, knower_first ? "a" : "b");
  back(sim, knower_first ? "b" : "a");
  REQUIRE(sim["b"].verdict);
  CHECK(sim["b"].verdict->exit_code == 0);
  CHECK(sim["b"].assignments.size() == 1);
}

TEST_CASE("what was set by hand, and who is excluded, survives the server",
          "[rendezvous][recovery]") {
  Sim sim(nodes(1, 3, 5), short_recovery());
  sim.join("a");
  sim.join("b");
  sim.advance(2s);
  REQUIRE(sim.command(SetSizes{1, 2}));
  sim.fail("b", {.code = 1});  // On probation: passed over.
  REQUIRE(sim["a"].assignment().nodes == 1);
  sim.restart_server();
  back(sim, "a");
  back(sim, "b");
  CHECK(sim.view().settings.max_nodes == 2);
  CHECK(sim.view().restarts == 1);
  CHECK(sim.state_of("b") == "excluded");
}

TEST_CASE("the master's word is passed on by the new server", "[rendezvous][recovery]") {
  Sim sim(nodes(2, 2), short_recovery());
  for (auto name : {"a", "b"}) {
    sim.add(name).slow = true;
    sim.greet(name);
  }
  sim["a"].hello.held.acknowledged = true;
  sim.restart_server();
  const bool master_first = GENERATE(true, false);
  back(sim, master_first ? "a" : "b");
  back(sim, master_first ? "b" : "a");
  CHECK(sim["b"].master_up);
}

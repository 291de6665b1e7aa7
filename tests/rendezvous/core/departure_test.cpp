#include "tests/rendezvous/core/job_harness.hpp"

#include <csignal>

#include <catch2/catch.hpp>

// Who leaves before the end: by a signal, a notice, with its server.

using namespace muster;
using namespace muster::rendezvous;
using namespace std::chrono_literals;
using test::nodes;
using test::running;
using test::Sim;

TEST_CASE("leaving is not closing: the others go on at the new size",
          "[rendezvous][job][leaving]") {
  Sim sim(nodes(1, 3));
  running(sim, {"a", "b", "c"});
  sim.say("b", Leaving{SIGINT});
  REQUIRE(sim["b"].stops.size() == 1);
  CHECK(sim["b"].stops[0].signal == SIGINT);
  CHECK(sim["a"].stops[0].signal == SIGTERM);
  sim.advance(999ms);
  CHECK(sim["a"].assignments.size() == 1);
  sim.advance(1ms);
  CHECK(sim["a"].assignment().nodes == 2);
  CHECK(sim["a"].assignment().restarts == 0);
  REQUIRE(sim["b"].verdict);
  CHECK(sim["b"].verdict->alone);
  CHECK(sim["b"].verdict->exit_code == 128 + SIGINT);
  CHECK(sim["b"].dismissed);
}

TEST_CASE("leavers within a second are one event", "[rendezvous][job][leaving]") {
  Sim sim(nodes(1, 3));
  running(sim, {"a", "b", "c"});
  sim.say("b", Leaving{SIGINT});
  sim.advance(900ms);
  sim.say("c", Leaving{SIGINT});
  sim.advance(100ms);
  CHECK(sim["a"].assignments.size() == 2);
  CHECK(sim["a"].assignment().nodes == 1);
}

TEST_CASE("when all leave, the job ends everywhere with the signal's code",
          "[rendezvous][job][leaving]") {
  Sim sim(nodes(1, 3));
  running(sim, {"a", "b", "c"});
  for (const auto* name : {"a", "b", "c"}) sim[name].slow = true;
  for (const auto* name : {"a", "b", "c"}) sim.say(name, Leaving{SIGTERM});
  for (const auto* name : {"a", "b", "c"}) CHECK(sim[name].stops.size() == 1);
  for (const auto* name : {"a", "b", "c"}) sim.empty(name);
  for (const auto* name : {"a", "b", "c"}) {
    REQUIRE(sim[name].verdict);
    CHECK(sim[name].verdict->exit_code == 128 + SIGTERM);
    CHECK_FALSE(sim[name].verdict->alone);
  }
}

TEST_CASE("a launcher that is signalled ends the job where too few remain",
          "[rendezvous][job][leaving]") {
  Sim sim(nodes(2, 2));
  running(sim, {"a", "b"});
  sim.say("b", Leaving{SIGINT});
  CHECK(sim["a"].verdict->exit_code == 128 + SIGINT);
  CHECK(sim["b"].verdict->exit_code == 128 + SIGINT);
}

TEST_CASE("who leaves before the first round leaves alone", "[rendezvous][job][leaving]") {
  Sim sim(nodes(3, 3));
  sim.join("a");
  sim.join("b");
  sim.say("b", Leaving{SIGINT});
  CHECK(sim["b"].verdict->exit_code == 128 + SIGINT);
  CHECK(sim["b"].dismissed);
  CHECK_FALSE(sim["a"].verdict);
}

TEST_CASE("the node that hosts the server stays without workers until the job ends",
          "[rendezvous][job][leaving]") {
  Sim sim(nodes(1, 2));
  sim.add("a").hello.hosts_server = true;
  sim.greet("a");
  sim.join("b");
  sim.advance(61s);
  sim.say("a", Leaving{SIGTERM, true});
  sim.say("a", Saving{sim["a"].round(), 0});
  sim.say("b", Saving{sim["b"].round(), 0});
  sim.advance(2s);
  CHECK(sim["b"].assignment().nodes == 1);
  CHECK_FALSE(sim["a"].verdict);
  CHECK(sim.state_of("a") == "leaving");
  SECTION("with the job's verdict") {
    sim.succeed("b");
    CHECK(sim["a"].verdict->exit_code == 0);
    CHECK(sim["a"].dismissed);
  }
  SECTION("a second signal ends the stay") {
    sim.say("a", Leaving{SIGTERM, true});
    CHECK(sim["a"].verdict->exit_code == 75);
    CHECK(sim["a"].dismissed);
  }
}

TEST_CASE("before a noticed node leaves, all workers save", "[rendezvous][job][preemption]") {
  Sim sim(nodes(1, 3));
  for (const auto* name : {"a", "b", "c"}) {
    sim.add(name).hello.slots = 2;
    sim.greet(name);
  }
  sim.advance(61s);
  const auto round = sim["a"].round();
  sim.ping("a");
  sim.advance(1s);
  sim.say("b", Notice{"spot instance", 20s});
  for (const auto* name : {"a", "b", "c"}) {
    REQUIRE(sim[name].prepares.size() == 1);
    CHECK(sim[name].stops.empty());
  }
  CHECK(sim["a"].prepares[0].left == 21s);  // From when it sent the quoted ping.
  sim.say("a", Saving{round, 0});
  sim.say("b", Saving{round, 1});
  CHECK(sim.noted("3 of 6 workers still save"));
  SECTION("until all have") {
    sim.say("b", Saving{round, 0});
    sim.say("c", Saving{round, 0});
  }
  SECTION("or the deadline ends") {
    sim.advance(19999ms);
    CHECK(sim["a"].stops.empty());
    sim.advance(1ms);
  }
  CHECK(sim["a"].stops.size() == 1);
  sim.advance(1s);
  CHECK(sim["a"].assignment().nodes == 2);
  CHECK(sim["a"].assignment().restarts == 0);
  CHECK(sim["b"].verdict->exit_code == 75);
  CHECK(sim["b"].verdict->alone);
}

TEST_CASE("a second signal ends the saving", "[rendezvous][job][preemption]") {
  Sim sim(nodes(1, 2));
  running(sim, {"a", "b"});
  sim.say("b", Leaving{SIGTERM, true});
  CHECK(sim["b"].stops.empty());
  sim.say("b", Leaving{SIGTERM, true});
  CHECK(sim["b"].stops.size() == 1);
}

TEST_CASE("a leaving that is said again after a reconnect is no second signal",
          "[rendezvous][job][preemption]") {
  Sim sim(nodes(1, 2));
  running(sim, {"a", "b"});
  sim.say("b", Leaving{SIGTERM, true});
  sim.drop("b");
  sim.greet("b");
  sim.say("b", Leaving{SIGTERM, true});
  CHECK(sim["b"].stops.empty());
  sim.say("b", Leaving{SIGTERM, true});
  CHECK(sim["b"].stops.size() == 1);
}

TEST_CASE("the signal that follows a notice ends no saving, the user's does",
          "[rendezvous][job][preemption]") {
  Sim sim(nodes(1, 2));
  running(sim, {"a", "b"});
  sim.say("b", Notice{"spot instance", 20s});
  const bool noticed = GENERATE(true, false);
  sim.say("b", Leaving{SIGTERM, noticed});
  CHECK(sim["b"].stops.empty() == noticed);
}

TEST_CASE("when all nodes are taken away the job is worth a requeue",
          "[rendezvous][job][preemption]") {
  Sim sim(nodes(2, 2));
  running(sim, {"a", "b"});
  for (const auto* name : {"a", "b"}) sim.say(name, Leaving{SIGTERM, true});
  for (const auto* name : {"a", "b"}) sim.say(name, Saving{sim[name].round(), 0});
  REQUIRE(sim["a"].verdict);
  CHECK(sim["a"].verdict->exit_code == 75);
  CHECK(sim["b"].verdict->exit_code == 75);
}

TEST_CASE("a member that reconnects while all save is told again, with what is left",
          "[rendezvous][job][preemption]") {
  Sim sim(nodes(1, 2));
  running(sim, {"a", "b"});
  sim.say("b", Notice{"spot instance", 20s});
  sim.drop("a");
  sim.advance(5s);
  sim.greet("a");
  REQUIRE(sim["a"].prepares.size() == 2);
  CHECK(sim["a"].prepares[1].left == 15s);
}

TEST_CASE("while all save, who ends for want of a peer is no failure", "[rendezvous][job]") {
  Sim sim(nodes(1, 2, 3));
  running(sim, {"a", "b"});
  sim.say("b", Notice{"spot", 30s});
  sim.fail("a", {.code = 1}, Cause::PeerLoss);  // The other rank saved and left.
  CHECK(sim["a"].stops.empty());
  sim.say("a", Saving{sim["a"].round(), 0});
  sim.say("b", Saving{sim["b"].round(), 0});
  sim.advance(1s);
  CHECK(sim["a"].assignment().nodes == 1);
  CHECK(sim["a"].assignment().restarts == 0);
}

TEST_CASE("an embedded server stays for a node that is cut off at the job's end",
          "[rendezvous][job]") {
  Sim sim(nodes(2, 2));
  sim.add("a").hello.hosts_server = true;
  sim.greet("a");
  sim.join("b");
  sim.succeed("b");
  sim.drop("b");
  sim.freeze("b");
  sim.succeed("a");
  sim.advance(8s);
  CHECK_FALSE(sim["a"].dismissed);
  SECTION("which comes back") {
    sim.greet("b");
    CHECK(sim["b"].verdict);
  }
  SECTION("which does not") { sim.advance(8s); }
  CHECK(sim["a"].dismissed);
}

TEST_CASE("a server that goes for good ends its jobs, and says that another try is worth it",
          "[rendezvous][job]") {
  Sim sim(nodes(1, 2));
  running(sim, {"a", "b"});
  sim.farewell("a", "left");
  sim.feed(Rendezvous::Ending{"its launcher ends"});
  REQUIRE(sim["b"].verdict);
  CHECK(sim["b"].verdict->exit_code == 75);
  CHECK(sim["b"].verdict->summary ==
        "the node that hosts the rendezvous leaves: its launcher ends");
  CHECK(sim["b"].dismissed);
  CHECK(sim.view().phase == "failed");
}

TEST_CASE("a drained node's workers have the time that the job says", "[rendezvous][job]") {
  auto settings = nodes(1, 2);
  settings.preempt_deadline = 3s;
  Sim sim(settings);
  running(sim, {"a", "b"});
  REQUIRE(sim.command(DrainNode{"b", {}}));
  CHECK(sim["a"].prepares.at(0).left <= 5s);  // From the last ping on.
  sim.advance(3s);
  CHECK(sim["b"].stops.size() == 1);
}

#include "tests/rendezvous/core/job_harness.hpp"

#include <algorithm>
#include <csignal>

#include <catch2/catch.hpp>

// Pings, and what follows from their absence.

using namespace muster;
using namespace muster::rendezvous;
using namespace std::chrono_literals;
using test::nodes;
using test::running;
using test::Sim;

TEST_CASE("each ping is answered by its number", "[rendezvous][lease]") {
  Sim sim(nodes(2, 2));
  sim.join("a");
  CHECK(sim["a"].newest_pong == 1);
  sim.ping("a");
  CHECK(sim["a"].newest_pong == 2);
}

TEST_CASE("ranks are given away 1.25 leases after the last answer", "[rendezvous][lease]") {
  Sim sim(nodes(1, 2));
  sim.join("a");
  sim.join("b");
  sim.advance(3s);
  sim.ping("b");
  sim.freeze("b");
  sim.advance(12499ms);
  CHECK(sim["a"].stops.empty());
  CHECK(sim.state_of("b") == "silent");
  sim.advance(1ms);
  REQUIRE(sim["a"].stops.size() == 1);
  CHECK(sim["a"].stops[0].reason == "node b was lost: its lease ended: no ping for 12.5s");
  CHECK(sim["a"].stops[0].gone == std::vector{sim["b"].hello.incarnation});
  CHECK(sim["a"].assignment().nodes == 1);
}

TEST_CASE("an incarnation whose ranks were given away is answered so, until nothing is left of it",
          "[rendezvous][lease]") {
  Sim sim(nodes(1, 2));
  running(sim, {"a", "b"});
  sim.freeze("b");
  sim.advance(13s);
  sim.ping("b");
  CHECK(sim["b"].gone);
  sim.ping("b");
  CHECK(sim["b"].gone);
  sim.drop("b");
  sim["b"].slow = true;
  sim.greet("b");
  CHECK(sim["b"].gone);
  CHECK(sim["b"].assignments.size() == 1);
  SECTION("it says so on that connection") { sim.empty("b"); }
  SECTION("it says so in its next Hello") {
    sim["b"].hello.held.empty = true;
    sim.greet("b");
  }
  CHECK_FALSE(sim["b"].gone);
  sim["b"].pings = true;
  sim.advance(500ms);
  CHECK(sim["b"].assignment().nodes == 2);
}

TEST_CASE("a closed connection proves nothing", "[rendezvous][lease]") {
  Sim sim(nodes(1, 2));
  running(sim, {"a", "b"});
  sim.drop("b");
  sim.advance(1s);
  CHECK(sim["a"].stops.empty());
  sim.greet("b");
  sim.advance(60s);
  CHECK(sim["a"].stops.empty());
  CHECK(sim["b"].assignments.size() == 1);
}

TEST_CASE("a farewell frees the ranks at once", "[rendezvous][lease]") {
  Sim sim(nodes(1, 2));
  running(sim, {"a", "b"});
  sim.farewell("b");
  CHECK(sim["a"].assignment().nodes == 1);
  const auto& last = sim.actions();
  CHECK(std::any_of(last.begin(), last.end(), [](const auto& action) {
    return std::holds_alternative<Rendezvous::Acknowledge>(action);
  }));
  SECTION("and what comes of that incarnation afterwards is answered with gone") {
    sim["b"].alive = true;
    sim.greet("b");
    CHECK(sim["b"].gone);
    CHECK(sim["a"].assignment().nodes == 1);
  }
}

TEST_CASE("a member whose Hello does not hold the standing round is sent its Assignment again",
          "[rendezvous][lease]") {
  Sim sim(nodes(2, 2));
  sim.join("a");
  sim.add("b").slow = true;
  sim.greet("b");
  const auto lost = sim["b"].round();
  sim["b"].assignments.clear();
  sim["b"].hello.held = {};
  sim.greet("b");
  REQUIRE(sim["b"].assignments.size() == 1);
  CHECK(sim["b"].round() == lost);
  CHECK(sim["a"].stops.empty());
}

TEST_CASE("a Stop that did not arrive is sent again", "[rendezvous][lease]") {
  Sim sim(nodes(1, 3));
  running(sim, {"a", "b", "c"});
  sim["b"].slow = true;
  sim.drop("b");
  sim.farewell("c");
  CHECK(sim["b"].stops.empty());
  sim.greet("b");
  REQUIRE(sim["b"].stops.size() == 1);
  sim.empty("b");
  CHECK(sim["b"].assignment().nodes == 2);
}

TEST_CASE("a member that never had the round that is stopped is empty of it",
          "[rendezvous][lease]") {
  Sim sim(nodes(1, 3));
  sim.join("a");
  sim.join("b");
  sim.add("c").slow = true;
  sim.greet("c");
  sim.drop("c");
  sim["c"].assignments.clear();
  sim["c"].hello.held = {};
  sim.farewell("b");
  CHECK(sim["a"].assignments.size() == 1);
  sim["c"].slow = false;
  sim.greet("c");
  CHECK(sim["c"].stops.empty());
  CHECK(sim["a"].assignments.size() == 2);
  CHECK(sim["c"].assignment().nodes == 2);
}

TEST_CASE("an old Hello that comes late replaces no newer connection", "[rendezvous][lease]") {
  Sim sim(nodes(1, 2));
  running(sim, {"a", "b"});
  auto old = sim["b"].hello;
  old.ping = 1;
  old.held = {};
  sim.feed(Rendezvous::Greeted{LinkId{900}, old, "10.0.0.2", "10.0.0.100"});
  sim.feed(Rendezvous::Heard{LinkId{900}, Leaving{SIGTERM}});
  CHECK(sim["a"].stops.empty());
  sim.advance(30s);
  CHECK(sim["a"].stops.empty());
}

TEST_CASE("a lease that ended at the agent is a lost node, though the server had not given it up",
          "[rendezvous][lease]") {
  Sim sim(nodes(1, 2));
  running(sim, {"a", "b"});
  sim["b"].slow = true;
  sim.drop("b");
  sim["b"].hello.held.unbroken = false;
  sim["b"].hello.held.empty = GENERATE(true, false);
  sim.greet("b");
  REQUIRE(sim["a"].stops.size() == 1);
  if (!sim["b"].hello.held.empty) sim.empty("b");
  CHECK(sim["b"].assignment().restarts == 0);
  CHECK(sim["b"].assignment().nodes == 2);
  CHECK(sim.noted("first cause: node b was lost: its lease ended"));
}

TEST_CASE("a node that is lost with hardly any memory left was probably killed for it",
          "[rendezvous][lease]") {
  constexpr std::uint64_t kGibibyte = std::uint64_t{1} << 30U;
  const std::string note = "; probably killed for memory as a whole: 7.9 of 8.0 GiB were in use";
  Sim sim(nodes(1, 2));
  running(sim, {"a", "b"});
  const auto lose = [&sim](std::uint64_t used, std::uint64_t limit) {
    sim["b"].memory_used = used;
    sim["b"].memory_limit = limit;
    sim.ping("b");
  };
  const auto reason = [&sim] { return sim["a"].stops.at(0).reason; };
  lose(kGibibyte * 79 / 10, 8 * kGibibyte);
  SECTION("its lease ended") {
    sim.freeze("b");
    sim.advance(13s);
    CHECK(reason() == "node b was lost: its lease ended: no ping for 12.5s" + note);
  }
  SECTION("its keeper says that its agent was killed") {
    sim.farewell("b", "its agent was killed by SIGKILL (signal 9)");
    CHECK(reason() == "node b was lost: its agent was killed by SIGKILL (signal 9)" + note);
  }
  SECTION("it crashed") {
    sim.farewell("b", "its agent was killed by SIGSEGV (signal 11)");
    CHECK(reason().find("memory") == std::string::npos);
  }
  SECTION("there was room again") {
    lose(7 * kGibibyte, 8 * kGibibyte);
    sim.freeze("b");
    sim.advance(13s);
    CHECK(reason().find("memory") == std::string::npos);
  }
  SECTION("it has no limit") {
    lose(7 * kGibibyte, 0);
    sim.freeze("b");
    sim.advance(13s);
    CHECK(reason().find("memory") == std::string::npos);
  }
}

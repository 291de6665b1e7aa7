#include "rendezvous/core/settings.hpp"
#include "tests/rendezvous/core/job_harness.hpp"

#include <csignal>

#include <catch2/catch.hpp>

using namespace muster;
using namespace muster::rendezvous;
using namespace std::chrono_literals;
using test::Sim;

namespace {

JobSettings nodes(std::uint32_t min, std::uint32_t max, std::uint32_t step = 1) {
  JobSettings settings;
  settings.min_nodes = min;
  settings.max_nodes = max;
  settings.node_step = step;
  return settings;
}

}  // namespace

TEST_CASE("a round forms at once when max is there", "[rendezvous][forming]") {
  Sim sim(nodes(2, 2));
  sim.join("a");
  sim.advance(100ms);
  CHECK(sim["a"].assignments.empty());
  sim.join("b");
  REQUIRE(sim["a"].assignments.size() == 1);
  REQUIRE(sim["b"].assignments.size() == 1);
  CHECK(sim["a"].assignment().nodes == 2);
  CHECK(sim["a"].assignment().world_size == 2);
  CHECK(sim["a"].round() == sim["b"].round());
}

TEST_CASE("with min there a round forms after 2 s without an arrival", "[rendezvous][forming]") {
  Sim sim(nodes(2, 8));
  sim.join("a");
  sim.join("b");
  sim.advance(1500ms);
  sim.join("c");
  sim.advance(1999ms);
  CHECK(sim["a"].assignments.empty());
  sim.advance(1ms);
  CHECK(sim["a"].assignment().nodes == 3);
}

TEST_CASE("the last call of 30 s caps all waiting", "[rendezvous][forming]") {
  Sim sim(nodes(2, 64));
  sim.join("n0");
  sim.advance(10s);
  for (int node = 1; sim["n0"].assignments.empty() && node < 60; ++node) {
    sim.join("n" + std::to_string(node));
    sim.advance(1s);
  }
  // Min was there from the second arrival: at 10 s. From then an arrival each second.
  CHECK(sim["n0"].assignment().nodes == 31);
}

TEST_CASE("a last call that the user set replaces the 2 s and the expected size",
          "[rendezvous][forming]") {
  auto settings = nodes(2, 8);
  settings.last_call = 12s;
  settings.prefer = 3;
  Sim sim(settings);
  for (const auto* name : {"a", "b", "c"}) sim.join(name);
  sim.advance(11999ms);
  CHECK(sim["a"].assignments.empty());
  sim.advance(1ms);
  CHECK(sim["a"].assignment().nodes == 3);
}

TEST_CASE("a round forms as soon as the expected number is there, rounded down to a legal one",
          "[rendezvous][forming]") {
  auto settings = nodes(2, 8, 2);
  settings.prefer = 5;
  Sim sim(settings);
  for (const auto* name : {"a", "b", "c"}) sim.join(name);
  CHECK(sim["a"].assignments.empty());
  sim.join("d");
  CHECK(sim["a"].assignment().nodes == 4);
}

TEST_CASE("only legal sizes form, and the rest are spares", "[rendezvous][forming]") {
  Sim sim(nodes(2, 8, 2));
  for (const auto* name : {"a", "b", "c"}) sim.join(name);
  sim.advance(2s);
  CHECK(sim["a"].assignment().nodes == 2);
  CHECK(sim["c"].assignments.empty());
  CHECK(sim.state_of("c") == "spare");
  CHECK(sim["c"].waits.back().find("runs with 2 nodes") != std::string::npos);
}

TEST_CASE("legal sizes are the multiples of the step from min to max", "[rendezvous][forming]") {
  const Sizes sizes{3, 9, 4};
  CHECK_FALSE(sizes.legal(3));
  CHECK(sizes.smallest() == 4);
  CHECK(sizes.legal(4) == 4);
  CHECK(sizes.legal(7) == 4);
  CHECK(sizes.legal(8) == 8);
  CHECK(sizes.legal(100) == 8);
  CHECK(sizes.largest() == 8);
}

TEST_CASE("sizes that no arrival can make legal are refused at the door", "[rendezvous][forming]") {
  for (const auto& [settings, part] :
       {std::pair{nodes(4, 2), "minimum of 4 is above the maximum of 2"},
        std::pair{nodes(3, 3, 2), "no multiple of 2 lies from 3 to 3"},
        std::pair{nodes(0, 3), "at least one node"}}) {
    Sim sim(settings);
    sim.join("a");
    REQUIRE(sim["a"].refusal);
    CHECK(sim["a"].refusal->exit_code == 2);
    CHECK(sim["a"].refusal->message.find(part) != std::string::npos);
    CHECK(sim["a"].refusal->message.find("node a") != std::string::npos);
  }
}

TEST_CASE("a node that fell silent is not there", "[rendezvous][forming]") {
  Sim sim(nodes(2, 8));
  sim.join("a");
  sim.freeze("a");
  sim.advance(5s);
  sim.join("b");
  sim.advance(5s);
  CHECK(sim["b"].assignments.empty());
  sim.ping("a");
  sim.advance(2s);
  CHECK(sim["b"].assignment().nodes == 2);
}

TEST_CASE("after a Stop all that remain form the next round at once", "[rendezvous][forming]") {
  Sim sim(nodes(1, 3));
  for (const auto* name : {"a", "b", "c"}) sim.join(name);
  sim.farewell("c");
  REQUIRE(sim["a"].assignments.size() == 2);
  CHECK(sim["a"].assignment().nodes == 2);
  CHECK(sim["a"].assignment().restarts == 0);
  CHECK(sim["a"].assignment().attempt == 1);
}

TEST_CASE("after a Stop a silent member is waited for, but no longer than two quiet seconds",
          "[rendezvous][forming]") {
  Sim sim(nodes(1, 4));
  for (const auto* name : {"a", "b", "c"}) sim.join(name);
  sim.advance(2s);
  sim["a"].slow = true;
  sim.freeze("b");
  sim.advance(6s);  // b obeys still, but is not there.
  sim.farewell("c");
  sim.empty("a");
  CHECK(sim["a"].assignments.size() == 1);
  SECTION("it comes back") {
    sim.ping("b");
    CHECK(sim["a"].assignment().nodes == 2);
  }
  SECTION("it does not") {
    sim.advance(1999ms);
    CHECK(sim["a"].assignments.size() == 1);
    sim.advance(1ms);
    CHECK(sim["a"].assignment().nodes == 1);
  }
}

TEST_CASE("the next round waits until every agent that holds any round said empty",
          "[rendezvous][forming]") {
  Sim sim(nodes(1, 3));
  for (const auto* name : {"a", "b", "c"}) sim.join(name);
  sim["b"].slow = true;
  sim.farewell("c");
  sim.say("b", Stopped{sim["b"].round()});
  sim.advance(25s);
  CHECK(sim["a"].assignments.size() == 1);
  sim.empty("b");
  CHECK(sim["a"].assignments.size() == 2);
}

TEST_CASE("the join times out with what was missing", "[rendezvous][forming]") {
  auto settings = nodes(3, 4);
  settings.join_timeout = 30s;
  Sim sim(settings);
  sim.join("h0");
  CHECK(sim["h0"].waits.back() ==
        "waiting for 2 more nodes (1 of 3 to 4 there: h0); 30 s until the join times out");
  sim.advance(29s);
  CHECK_FALSE(sim["h0"].verdict);
  sim.advance(1s);
  REQUIRE(sim["h0"].verdict);
  CHECK(sim["h0"].verdict->exit_code == 75);
  CHECK(sim["h0"].verdict->summary.find("2 more nodes (1 of 3 to 4 there: h0)") !=
        std::string::npos);
}

TEST_CASE("who waits is told of each arrival, and of nothing else", "[rendezvous][forming]") {
  Sim sim(nodes(3, 3));
  sim.join("a");
  sim.advance(20s);
  CHECK(sim["a"].waits.size() == 1);
  sim.join("b");
  REQUIRE(sim["a"].waits.size() == 2);
  CHECK(sim["a"].waits.back().find("1 more node (2 of 3 there: a, b)") != std::string::npos);
}

TEST_CASE("settings that differ are refused with both values and both nodes",
          "[rendezvous][forming]") {
  Sim sim(nodes(2, 2));
  sim.join("a");
  auto& other = sim.add("b");
  other.hello.settings.max_restarts = 5;
  other.hello.settings.lease = 3s;
  sim.greet("b");
  REQUIRE(other.refusal);
  CHECK(other.refusal->exit_code == 2);
  CHECK(
      other.refusal->message ==
      "the nodes of job \"job\" do not agree: --max-restarts is 0 on a and 5 on b; --lease is 10s "
      "on a and 3s on b; give all nodes the same");
}

TEST_CASE("every setting that differs is named", "[rendezvous][forming]") {
  JobSettings other;
  other.min_nodes = 2;
  other.max_nodes = 4;
  other.node_step = 2;
  other.max_restarts = 1;
  other.lease = 1s;
  other.last_call = 3s;
  other.join_timeout = 5s;
  other.prefer = 3;
  other.scale_up = ScaleUp::Never;
  other.restart_backoff = 1500ms;
  other.store_on_server = true;
  const auto found = differences({}, other);
  CHECK(found.size() == 9);
  CHECK(found[0].second == "2:4:2");
  CHECK(found[7].second == "1.5s");
  CHECK(differences(other, other).empty());
}

TEST_CASE("spares join a running job in one batch", "[rendezvous][forming][scale-up]") {
  Sim sim(nodes(1, 8));
  sim.join("a");
  sim.advance(2s);
  REQUIRE(sim["a"].assignments.size() == 1);
  sim.join("b");
  sim.advance(3s);
  sim.join("c");
  sim.advance(4999ms);
  CHECK(sim["a"].stops.empty());
  sim.advance(1ms);
  CHECK(sim["a"].stops.size() == 1);
  CHECK(sim["a"].assignment().nodes == 3);
  CHECK(sim["a"].assignment().restarts == 0);
}

TEST_CASE("a job that is full scales up after half a second", "[rendezvous][forming][scale-up]") {
  Sim sim(nodes(1, 2));
  sim.join("a");
  sim.advance(2s);
  sim.join("b");
  sim.advance(499ms);
  CHECK(sim["a"].stops.empty());
  sim.advance(1ms);
  CHECK(sim["b"].assignment().nodes == 2);
}

TEST_CASE("a size that would not grow is no reason to stop", "[rendezvous][forming][scale-up]") {
  Sim sim(nodes(2, 8, 2));
  sim.join("a");
  sim.join("b");
  sim.advance(2s);
  sim.join("c");
  sim.advance(60s);
  CHECK(sim["a"].stops.empty());
  sim.join("d");
  sim.advance(5s);
  CHECK(sim["a"].assignment().nodes == 4);
}

TEST_CASE("by --scale-up never a running round is left alone", "[rendezvous][forming][scale-up]") {
  auto settings = nodes(1, 3);
  settings.scale_up = ScaleUp::Never;
  Sim sim(settings);
  sim.join("a");
  sim.join("b");
  sim.advance(2s);
  sim.join("c");
  sim.advance(60s);
  CHECK(sim["a"].stops.empty());
  CHECK(sim["c"].waits.back().find("never") != std::string::npos);
  sim.farewell("b");  // But the next restart takes it in.
  CHECK(sim["c"].assignment().nodes == 2);
}

TEST_CASE("there is no scale-up while a member is silent: its successor may be the one that came",
          "[rendezvous][forming][scale-up]") {
  Sim sim(nodes(1, 4));
  sim.join("a");
  sim.join("b");
  sim.advance(2s);
  sim.freeze("b");
  sim.advance(4s);
  sim.join("c");
  sim.advance(6s);
  CHECK(sim["a"].stops.empty());
  sim.advance(4s);  // Now b is given up.
  CHECK(sim["a"].stops.size() == 1);
  CHECK(sim["a"].assignment().nodes == 2);
}

TEST_CASE("a spare is promoted at once when a node is lost", "[rendezvous][forming]") {
  Sim sim(nodes(2, 2));
  for (const auto* name : {"a", "b", "c"}) sim.join(name);
  CHECK(sim.state_of("c") == "spare");
  CHECK(sim["c"].waits.back().find("spare") != std::string::npos);
  sim.farewell("a");
  CHECK(sim["c"].assignment().nodes == 2);
  CHECK(sim["c"].assignment().restarts == 0);
}

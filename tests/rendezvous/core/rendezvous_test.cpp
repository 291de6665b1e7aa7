#include "rendezvous/core/rendezvous.hpp"

#include "rendezvous/core/tags.hpp"
#include "tests/rendezvous/core/job_harness.hpp"

#include <chrono>
#include <csignal>

#include <catch2/catch.hpp>

using namespace muster;
using namespace muster::rendezvous;
using namespace std::chrono_literals;
using test::nodes;
using test::Sim;

TEST_CASE("a node of another launch is refused, both tags named", "[rendezvous][launch]") {
  Sim sim(nodes(2, 2));
  sim.tag = "12.0.1";
  sim.join("a");
  sim.tag = GENERATE(as<std::string>(), "12.0.0", "13.0.5", "12.1.2", "");
  sim.join("b");
  REQUIRE(sim["b"].refusal);
  CHECK(sim["b"].refusal->exit_code == 2);
  CHECK(sim["b"].refusal->message.find("launch tag 12.0.1") != std::string::npos);
  CHECK(sim["b"].refusal->message.find(sim.tag.empty() ? "no launch tag" : sim.tag) !=
        std::string::npos);
}

TEST_CASE("a job that follows under the same id has rounds above those of the one before",
          "[rendezvous][epoch]") {
  Sim sim(nodes(1, 1));
  sim.join("a");
  const auto first = sim["a"].round();
  sim.succeed("a");
  REQUIRE(sim["a"].dismissed);
  sim.join("b");
  CHECK(sim["b"].round().epoch > first.epoch);
}

TEST_CASE("a server of one job refuses the nodes of another", "[rendezvous][limits]") {
  Rendezvous::Settings settings;
  settings.only_job = "mine";
  Sim sim(nodes(1, 1), settings);
  sim.join("a");
  REQUIRE(sim["a"].refusal);
  CHECK(sim["a"].refusal->exit_code == 2);
  CHECK(sim["a"].refusal->message.find("job \"mine\" alone") != std::string::npos);
}

TEST_CASE("a farewell that came in recovery says nothing of a job that begins later",
          "[rendezvous][recovery]") {
  Rendezvous::Settings settings;
  settings.max_lease = 10s;
  Sim sim(nodes(1, 1), settings);
  sim.add("ghost").hello.held.round = RoundId{1, 1};
  sim.farewell("ghost");
  sim.advance(60s);
  sim.join("a");
  CHECK(sim["a"].assignments.size() == 1);
  CHECK(sim.view().phase == "running");
}

TEST_CASE("a higher restart of the scheduler's job waits until the old members are gone",
          "[rendezvous][launch]") {
  Sim sim(nodes(1, 2));
  sim.tag = "12.0.0";
  sim.join("a");
  sim.join("b");
  sim.tag = "12.0.1";
  sim.join("c");
  sim.join("d");
  CHECK_FALSE(sim["c"].refusal);
  CHECK(sim["c"].waits.back().find("launch 12.0.0") != std::string::npos);
  sim.farewell("a");
  CHECK(sim["c"].assignments.empty());
  SECTION("by their farewells") { sim.farewell("b"); }
  SECTION("by their leases") {
    sim.freeze("b");
    sim.advance(13s);
  }
  REQUIRE_FALSE(sim["c"].assignments.empty());
  CHECK(sim["c"].assignment().nodes == 2);
  CHECK(sim["c"].assignment().attempt == 0);
}

TEST_CASE("a node that waits for another launch's end may leave", "[rendezvous][launch]") {
  Sim sim(nodes(1, 1));
  sim.tag = "12.0.0";
  sim.join("a");
  sim.tag = "12.0.1";
  sim.join("b");
  sim.advance(60s);
  sim.say("b", Leaving{SIGINT});
  CHECK(sim["b"].verdict->exit_code == 128 + SIGINT);
  CHECK(sim["b"].dismissed);
  sim.farewell("a");
  CHECK(sim["b"].assignments.empty());
}

TEST_CASE("a restart is told by its number", "[rendezvous][launch]") {
  CHECK(is_restart_of("12.0.10", "12.0.9"));
  CHECK_FALSE(is_restart_of("12.0.9", "12.0.10"));
  CHECK_FALSE(is_restart_of("12.1.1", "12.0.0"));
  CHECK_FALSE(is_restart_of("12.0.x", "12.0.1"));
  CHECK_FALSE(is_restart_of("2", "1"));
  CHECK_FALSE(is_restart_of("", ""));
}

TEST_CASE("a node that comes before the old job has left waits for that", "[rendezvous]") {
  Sim sim(nodes(1, 1));
  sim.join("a");
  sim["a"].slow = true;
  sim.succeed("a");
  REQUIRE(sim["a"].verdict);
  sim.join("b");
  CHECK_FALSE(sim["b"].verdict);
  CHECK(sim["b"].assignments.empty());
  sim.say("a", VerdictSeen{});
  CHECK(sim["b"].assignments.size() == 1);
}

TEST_CASE("the server's limits are refusals that name them", "[rendezvous][limits]") {
  Rendezvous::Settings server;
  server.limits = {.jobs = 1, .nodes = 2, .name = 40, .slots = 8};
  Sim sim(nodes(1, 3), server);
  sim.join("a");
  SECTION("jobs") {
    sim.add("b").hello.job = "another";
    sim.greet("b");
    CHECK(sim["b"].refusal->message == "node b: this server takes at most 1 job");
  }
  SECTION("nodes") {
    sim.join("b");
    sim.join("c");
    CHECK(sim["c"].refusal->message == "node c: this server takes at most 2 nodes");
    sim.farewell("b");
    sim.join("d");
    CHECK_FALSE(sim["d"].refusal);
  }
  SECTION("names") {
    sim.add("b").hello.role = std::string(41, 'x');
    sim.greet("b");
    CHECK(sim["b"].refusal->message == "the role of node b has 41 bytes: at most 40 are taken");
  }
  SECTION("workers") {
    sim.add("b").hello.slots = 9;
    sim.greet("b");
    CHECK(sim["b"].refusal->message == "node b: --nproc-per-node 9: from 1 to 8 workers are taken");
  }
  CHECK(sim.knows_job());
}

TEST_CASE("a lease that is too long for the server is refused", "[rendezvous][limits]") {
  Rendezvous::Settings server;
  server.max_lease = 60s;
  auto settings = nodes(1, 2);
  settings.lease = 61s;
  Sim sim(settings, server);
  sim.join("a");
  CHECK(sim["a"].refusal->message ==
        "node a: --lease 61s is more than this server admits, 60s (its --max-lease)");
}

TEST_CASE("a lease of none is for one node only", "[rendezvous][limits]") {
  auto settings = nodes(1, 2);
  settings.lease = 0s;
  Sim sim(settings);
  sim.join("a");
  REQUIRE(sim["a"].refusal);
}

TEST_CASE("jobs do not touch each other", "[rendezvous]") {
  Sim sim(nodes(1, 1));
  sim.join("a");
  sim.add("b").hello.job = "another";
  sim.greet("b");
  REQUIRE(sim["b"].assignments.size() == 1);
  sim.farewell("a");
  CHECK(sim["b"].stops.empty());
  CHECK(sim.command(StopJob{}));
  CHECK(sim["b"].stops.empty());
}

TEST_CASE("a command to a job that is not known says so", "[rendezvous]") {
  Sim sim(nodes(1, 1));
  CHECK(sim.command(RestartJob{}).error().code == Errc::NotFound);
}

TEST_CASE("a job whose nodes are all lost waits for their return, then is forgotten",
          "[rendezvous]") {
  auto settings = nodes(1, 1);
  settings.join_timeout = 60s;
  settings.max_restarts = 3;
  Sim sim(settings);
  sim.join("a");
  sim.fail("a", {.code = 1});
  sim.farewell("a");
  CHECK(sim.knows_job());
  SECTION("they return") {
    sim.advance(59s);
    sim.join("a");
    CHECK(sim["a"].assignment().restarts == 1);
    CHECK(sim["a"].assignment().attempt == 2);
  }
  SECTION("they don't") {
    sim.advance(60s);
    CHECK_FALSE(sim.knows_job());
  }
}

TEST_CASE("ten thousand agents form a round, and end it, in little time", "[rendezvous][scale]") {
  constexpr std::uint32_t kAgents = 10'000;
  Rendezvous rendezvous({.bound_at = TimePoint{} - 1h});
  const TimePoint now{};
  std::size_t assignments = 0;
  std::size_t verdicts = 0;
  RoundId round;
  const auto began = std::chrono::steady_clock::now();
  const auto feed = [&](const Rendezvous::Event& event) {
    for (const auto& action : rendezvous.step(now, event)) {
      const auto* send = std::get_if<Rendezvous::Send>(&action);
      const auto* directive = send ? std::get_if<Directive>(&send->message) : nullptr;
      if (directive == nullptr) continue;
      if (const auto* assignment = std::get_if<Assignment>(&directive->order)) {
        ++assignments;
        round = assignment->round;
      }
      verdicts += std::holds_alternative<Verdict>(directive->order) ? 1 : 0;
    }
  };
  for (std::uint32_t node = 0; node < kAgents; ++node) {
    Hello hello;
    hello.job = "big";
    hello.incarnation = {"incarnation-" + std::to_string(node)};
    hello.machine = hello.name = "node-" + std::to_string(node);
    hello.settings = nodes(kAgents, kAgents);
    hello.slots = 8;
    hello.ping = 1;
    const auto peer = "10." + std::to_string(node >> 16U) + "." +
                      std::to_string(node >> 8U & 255U) + "." + std::to_string(node & 255U);
    feed(Rendezvous::Greeted{LinkId{node + 1}, hello, peer, "10.9.9.9"});
  }
  CHECK(assignments == kAgents);
  for (std::uint32_t node = 0; node < kAgents; ++node) {
    feed(Rendezvous::Heard{LinkId{node + 1}, Report(Succeeded{round})});
    feed(Rendezvous::Heard{LinkId{node + 1}, Report(Empty{round, {}, {"h", 1}})});
  }
  CHECK(verdicts == kAgents);
  for (std::uint32_t node = 0; node < kAgents; ++node) {
    feed(Rendezvous::Heard{LinkId{node + 1}, Report(VerdictSeen{})});
  }
  for (std::uint32_t node = 0; node < kAgents; ++node) feed(Rendezvous::Lost{LinkId{node + 1}});
  // Far below what a quadratic step would need, with room for sanitizers on a busy machine.
  CHECK(std::chrono::steady_clock::now() - began < 30s);
}

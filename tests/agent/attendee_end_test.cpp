#include "tests/agent/attendee_sim.hpp"

#include <csignal>

#include <catch2/catch.hpp>

// How an agent leaves, and when.

using namespace muster;
using namespace muster::agent;
using namespace std::chrono_literals;

TEST_CASE("a launcher that is ended says so to each server until it may go", "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.order(sim.assignment(1));
  sim.report(Leaving{SIGTERM});
  sim.drop(sim.voice);
  sim.join();
  CHECK(count<Leaving>(sim.reports) == 1);
  sim.hear(Dismissal{});
  CHECK_FALSE(sim.left);  // Its workers are still there.
  sim.report(Empty{{1, 1}, {}, {}});
  REQUIRE(sim.left);
  CHECK(sim.left->exit_code == 128 + SIGTERM);
}

TEST_CASE("a launcher that is ended and holds nothing waits no longer than the server answers",
          "[agent][attendee]") {
  AttendeeSim sim;
  SECTION("it never answered") {
    sim.report(Leaving{SIGINT});
    REQUIRE(sim.left);
    CHECK(sim.left->exit_code == 128 + SIGINT);
  }
  SECTION("it falls silent") {
    sim.join();
    sim.report(Leaving{SIGINT});
    sim.advance_answered(30s);
    CHECK_FALSE(sim.left);
    sim.advance(5s);
    CHECK(sim.left);
  }
  SECTION("the user says it twice") {
    sim.join();
    sim.report(Leaving{SIGINT});
    CHECK_FALSE(sim.left);
    sim.report(Leaving{SIGINT});
    CHECK(sim.left);
  }
}

TEST_CASE("who waits for others to hear the verdict may be told to wait no longer",
          "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.report(Leaving{SIGINT});
  Verdict own;
  own.alone = true;
  own.exit_code = 128 + SIGINT;
  sim.order(own);
  CHECK_FALSE(sim.left);
  sim.report(Leaving{SIGINT});
  REQUIRE(sim.left);
  CHECK(sim.left->verdict->exit_code == 128 + SIGINT);
}

TEST_CASE("an agent that leaves in any case leaves with the verdict, when it learns it in time",
          "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.order(sim.assignment(1));
  sim.hear(Refusal{"no", 1});
  sim.order(Verdict{});
  CHECK_FALSE(sim.left);
  sim.report(Empty{{1, 1}, {}, {}});
  REQUIRE(sim.left);
  CHECK(sim.left->verdict);
}

TEST_CASE("a node that is preempted or drained is worth a requeue", "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  SECTION("preempted") { sim.report(Leaving{SIGTERM, true}); }
  SECTION("drained") {}
  sim.hear(Dismissal{});
  REQUIRE(sim.left);
  CHECK(sim.left->exit_code == 75);
}

TEST_CASE("who ends the launcher while no server hears of it need not wait for one",
          "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.order(sim.assignment(1));
  const bool half_open = GENERATE(true, false);
  if (half_open) {
    sim.report(Leaving{SIGINT});
    CHECK(sim.orders.size() == 1);  // It may yet be heard.
    sim.advance(6s);
  } else {
    sim.drop(sim.voice);
    sim.report(Leaving{SIGINT});
  }
  REQUIRE(sim.orders.size() == 2);
  const auto& stop = std::get<Stop>(sim.orders[1]);
  CHECK(stop.round == RoundId{1, 1});
  CHECK(stop.signal == SIGINT);
  sim.report(Stopped{{1, 1}});
  sim.report(Empty{{1, 1}, {}, {}});
  sim.advance(6s);
  REQUIRE(sim.left);
  CHECK(sim.left->exit_code == 128 + SIGINT);
}

TEST_CASE("a server that goes with its node is waited for a minute beyond the lease",
          "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.hear(Welcome{"1", true});
  sim.drop(sim.voice);
  sim.advance(72s);
  CHECK_FALSE(sim.left);
  sim.advance(2s);
  REQUIRE(sim.left);
  CHECK(sim.left->exit_code == 75);
}

TEST_CASE("a refusal ends the agent with its code and message", "[agent][attendee]") {
  AttendeeSim sim;
  sim.connect(sim.dialled[0]);
  sim.hear(Refusal{"max_restarts is 3 here and 0 there", 2});
  REQUIRE(sim.left);
  CHECK(sim.left->exit_code == 2);
  CHECK(sim.left->message == "max_restarts is 3 here and 0 there");
  CHECK_FALSE(sim.left->verdict);
}

TEST_CASE("a refusal of a node that holds a round kills its workers first", "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.order(sim.assignment(1));
  sim.hear(Refusal{"no", 1});
  CHECK(sim.fences.size() == 1);
  CHECK_FALSE(sim.left);
  sim.report(Empty{{1, 1}, {}, {}});
  CHECK(sim.left);
}

TEST_CASE("joining is given up after the join timeout, saying what was tried",
          "[agent][attendee]") {
  AttendeeSim sim;
  while (!sim.left && sim.now < TimePoint{61s}) {
    if (sim.dialled.size() > sim.hung_up.size()) sim.drop(sim.dialled.back(), "connection refused");
    sim.advance(100ms);
  }
  REQUIRE(sim.left);
  CHECK(sim.now <= TimePoint{60100ms});
  CHECK(sim.left->exit_code == 75);
  CHECK(sim.left->message ==
        "no rendezvous server answered at head:29400 within 60 s: connection refused");
}

TEST_CASE("a server that was lost for long is given up, with nothing left running",
          "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.order(sim.assignment(1));
  sim.hear(Waiting{"waiting for 1 node"});
  sim.drop(sim.voice, "reset");
  sim.advance(10s);
  CHECK(sim.fences.size() == 1);
  sim.report(Empty{{1, 1}, {}, {}});
  sim.advance(62400ms);
  CHECK_FALSE(sim.left);
  sim.advance(100ms);
  REQUIRE(sim.left);
  CHECK(sim.left->exit_code == 75);
  CHECK(sim.left->message ==
        "the rendezvous server at head:29400 has not been heard of for 72 s: reset; before that, "
        "waiting for 1 node");
}

TEST_CASE("a verdict is acknowledged, and the agent leaves when dismissed", "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.order(Verdict{.exit_code = 7, .summary = "rank 1 failed"});
  CHECK(count<VerdictSeen>(sim.reports) == 1);
  CHECK_FALSE(sim.left);
  sim.hear(Dismissal{});
  REQUIRE(sim.left);
  REQUIRE(sim.left->verdict);
  CHECK(sim.left->verdict->exit_code == 7);
}

TEST_CASE("two seconds after the verdict the agent leaves a server that answers",
          "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.order(Verdict{});
  sim.advance_answered(1900ms);
  CHECK_FALSE(sim.left);
  sim.advance_answered(200ms);
  CHECK(sim.left);
}

TEST_CASE("an agent that knows the verdict dials on, and tells it to a server that does not",
          "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.order(Verdict{.exit_code = 7});
  sim.drop(sim.voice);
  SECTION("which comes back") {
    sim.advance(5s);
    CHECK_FALSE(sim.left);
    sim.connect(sim.dialled.back());
    REQUIRE(sim.hellos.back().held.verdict);
    CHECK(sim.hellos.back().held.verdict->exit_code == 7);
    CHECK_FALSE(sim.left);
    sim.hear(Pong{sim.newest_ping});
    CHECK(sim.left);
  }
  SECTION("for 1.25 leases and 2 s at most") {
    sim.advance(14400ms);
    CHECK_FALSE(sim.left);
    sim.advance(100ms);
    CHECK(sim.left);
  }
}

TEST_CASE("an agent that leaves a job which goes on keeps nobody waiting", "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.order(Verdict{.exit_code = 143, .alone = true});
  sim.drop(sim.voice);
  sim.advance(1900ms);
  CHECK_FALSE(sim.left);
  sim.advance(100ms);
  REQUIRE(sim.left);
  CHECK(sim.left->verdict->exit_code == 143);
}

TEST_CASE("a verdict over a running round kills it before the agent leaves", "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.order(sim.assignment(1));
  sim.order(Verdict{});
  CHECK(sim.fences.size() == 1);
  sim.hear(Dismissal{});
  CHECK_FALSE(sim.left);
  sim.report(Empty{{1, 1}, {}, {}});
  CHECK(sim.left);
}

TEST_CASE("a server that was lost and came back is said once each", "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.drop(sim.voice, "reset");
  sim.drop(sim.dialled.back(), "refused");
  sim.advance(1s);
  sim.join();
  CHECK(sim.said ==
        std::vector<std::string>{
            "lost the rendezvous server at head:29400: reset; dialling again, for 72 s at most",
            "the rendezvous server at head:29400 answers again"});
}

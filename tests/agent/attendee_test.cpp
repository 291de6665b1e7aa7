#include "tests/agent/attendee_sim.hpp"

#include <csignal>
#include <set>

#include <catch2/catch.hpp>

using namespace muster;
using namespace muster::agent;
using namespace std::chrono_literals;
using Line = Attendee::Line;

TEST_CASE("Hello is followed by a ping, and pings go out each fifth of the lease",
          "[agent][attendee]") {
  AttendeeSim sim;
  REQUIRE(sim.dialled.size() == 1);
  sim.connect(sim.dialled[0]);
  REQUIRE(sim.sent.size() == 2);
  CHECK(std::holds_alternative<Hello>(std::get<Report>(sim.sent[0])));
  CHECK(std::holds_alternative<Ping>(sim.sent[1]));
  sim.hear(Pong{1});
  sim.advance(4s);
  CHECK(sim.pings == std::vector<TimePoint>{TimePoint{}, TimePoint{2s}, TimePoint{4s}});
}

TEST_CASE("the lease counts from when the answered ping was sent", "[agent][attendee]") {
  AttendeeSim sim;
  sim.connect(sim.dialled[0]);
  sim.advance(2s);  // Ping 3 goes out.
  sim.advance(1s);
  sim.hear(Pong{1});
  CHECK(sim.lease_ends == TimePoint{10s});
  sim.hear(Pong{3});
  CHECK(sim.lease_ends == TimePoint{12s});
  sim.hear(Pong{2});  // Overtaken: takes nothing back.
  CHECK(sim.lease_ends == TimePoint{12s});
}

TEST_CASE("nothing but the answer to a ping that was sent renews the lease", "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.advance(3s);
  const auto ends = sim.lease_ends;
  sim.hear(Welcome{"1"});
  sim.hear(Waiting{"for nodes"});
  sim.order(sim.assignment(1));
  sim.hear(Pong{99});
  sim.hear(Pong{2});  // A second answer to the same ping.
  CHECK(sim.lease_ends == ends);
}

TEST_CASE("at half the lease the workers are told and another line is dialled",
          "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.order(sim.assignment(1));
  sim.advance(4999ms);
  CHECK(sim.half_leases == 0);
  CHECK(sim.dialled.size() == 1);
  sim.advance(1ms);
  CHECK(sim.half_leases == 1);
  REQUIRE(sim.dialled.size() == 2);
  CHECK(sim.hung_up.empty());  // The first may recover before.
  sim.advance(1s);
  CHECK(sim.half_leases == 1);
}

TEST_CASE("a line that was replaced may still answer pings, but gives no orders",
          "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  const auto old = sim.voice;
  sim.advance(5s);
  const auto before = sim.newest_ping;
  sim.connect(sim.dialled[1]);
  sim.order_on(old, before, std::nullopt, sim.assignment(1));
  CHECK(sim.orders.empty());
  sim.hear_on(old, Pong{before});
  CHECK(sim.lease_ends == TimePoint{14s});
  sim.hear(Pong{sim.newest_ping});
  CHECK(sim.hung_up == std::vector<Line>{old});
}

TEST_CASE("at the lease's end the tree is fenced, and later answers don't undo that",
          "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.order(sim.assignment(1));
  sim.advance(9s);
  CHECK(sim.fences.empty());
  const auto unanswered = sim.newest_ping;
  const auto ends = sim.lease_ends;
  SECTION("by the clock") { sim.advance(1s); }
  SECTION("by whatever is done first after the agent was frozen") {
    sim.now += 1s;
    sim.hear(Pong{unanswered});
  }
  CHECK(sim.fences.size() == 1);
  sim.hear(Pong{unanswered});
  CHECK(sim.fences.size() == 1);
  CHECK(sim.lease_ends == ends);  // The keeper helps until the tree is empty.
  sim.report(Empty{{1, 1}, {}, {}});
  CHECK(sim.lease_ends > ends);
}

TEST_CASE("a renewal that comes too late for the keeper's page is none", "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.order(sim.assignment(1));
  sim.advance(8s);
  sim.hear(Pong{sim.newest_ping});  // Then the agent is frozen, before it writes the page.
  sim.feed(Attendee::Lapsed{});
  CHECK(sim.fences.size() == 1);
  sim.report(Empty{{1, 1}, {}, {}});
  sim.connect(sim.dialled.back());
  CHECK_FALSE(sim.hellos.back().held.unbroken);
}

TEST_CASE("an agent whose ranks were given away kills at once and comes back as somebody new",
          "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.order(sim.assignment(1));
  sim.hear(Pong{sim.newest_ping, true});
  CHECK(sim.fences.size() == 1);
  const auto dialled = sim.dialled.size();
  sim.report(Empty{{1, 1}, {}, {"host", 7}});
  REQUIRE(sim.dialled.size() == dialled + 1);
  sim.join();
  const auto& hello = sim.hellos.back();
  CHECK(hello.held.round == RoundId{1, 1});
  CHECK(hello.held.empty);
  CHECK_FALSE(hello.held.unbroken);
  CHECK(hello.store == Endpoint{"host", 7});
  sim.order(sim.assignment(2));
  CHECK(sim.orders.size() == 2);
}

TEST_CASE("a failure that was seen before the lease's end counts, however late it is reported",
          "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.order(sim.assignment(1));
  sim.now += 10s;
  sim.report(Failed{{1, 1}, {}, 1});
  CHECK(sim.fences.size() == 1);
  CHECK(count<Failed>(sim.reports) == 1);
}

TEST_CASE("a reset is redialled at once, and again after pauses of at most a tenth of the lease",
          "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.drop(sim.voice);
  CHECK(sim.dialled.size() == 2);
  std::set<Duration> pauses;
  for (int attempt = 0; attempt < 20; ++attempt) {
    const auto count_before = sim.dialled.size();
    sim.drop(sim.dialled.back(), "connection refused");
    CHECK(sim.dialled.size() == count_before);
    const auto pause = *sim.attendee.next_deadline() - sim.now;
    CHECK(pause <= kLease / 10);
    pauses.insert(pause);
    sim.advance(pause);
    CHECK(sim.dialled.size() == count_before + 1);
  }
  CHECK(pauses.size() > 10);  // Jitter.
}

TEST_CASE("a server that accepts and resets each time is not dialled in a hot loop",
          "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.drop(sim.voice);
  sim.connect(sim.dialled.back());
  const auto dialled = sim.dialled.size();
  sim.drop(sim.dialled.back());
  CHECK(sim.dialled.size() == dialled);
}

TEST_CASE("an Assignment is refused unless it is above every round named", "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.order(sim.assignment(3));
  sim.report(Empty{{1, 3}, {}, {}});
  sim.order(sim.assignment(3));
  sim.order(sim.assignment(2));
  CHECK(sim.orders.size() == 1);
  sim.order(Stop{.round = {1, 7}});  // Of a round that never came here.
  sim.order(sim.assignment(6));
  CHECK(sim.orders.size() == 2);
  sim.order(sim.assignment(8));
  CHECK(sim.orders.size() == 3);
}

TEST_CASE("an Assignment is refused while another round is held", "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.order(sim.assignment(1));
  sim.order(sim.assignment(2));
  CHECK(sim.orders.size() == 1);
  sim.report(Empty{{1, 1}, {}, {}});
  sim.order(sim.assignment(2));  // It was refused, not spent.
  CHECK(sim.orders.size() == 2);
}

TEST_CASE("a node whose processes can't be killed says so in each Hello, and takes no later round",
          "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.order(sim.assignment(1));
  sim.report(Stuck{{1, 1}, {4711}});
  sim.order(sim.assignment(2));
  CHECK(sim.orders.size() == 1);
  sim.drop(sim.voice);
  sim.join();
  CHECK(sim.hellos.back().held.stuck);
  CHECK(sim.hellos.back().held.empty);
}

TEST_CASE("an Assignment that finds no lease is refused, and asked for by another Hello",
          "[agent][attendee]") {
  AttendeeSim sim;
  sim.connect(sim.dialled[0]);
  sim.order(sim.assignment(1));
  CHECK(sim.orders.empty());
  REQUIRE(sim.dialled.size() == 2);
  sim.join();
  sim.order(sim.assignment(1));
  CHECK(sim.orders.size() == 1);
}

TEST_CASE("an order runs out when the server's right did", "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  const auto quoted = sim.newest_ping;  // Sent at 0.
  sim.advance(3s);
  SECTION("in time") {
    sim.order_quoting(quoted, 3001ms, sim.assignment(1));
    CHECK(sim.orders.size() == 1);
  }
  SECTION("too late") {
    sim.order_quoting(quoted, 3000ms, sim.assignment(1));
    CHECK(sim.orders.empty());
  }
  SECTION("so late that nobody knows when the ping was sent") {
    sim.advance_answered(30s);
    sim.order_quoting(quoted, 20s, sim.assignment(1));
    CHECK(sim.orders.empty());
  }
  SECTION("a single server's right never ends") {
    sim.advance_answered(30s);
    sim.order_quoting(quoted, std::nullopt, sim.assignment(1));
    CHECK(sim.orders.size() == 1);
  }
}

TEST_CASE("an order that quotes no ping of this Hello is refused", "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  const auto before = sim.newest_ping;
  sim.drop(sim.voice);
  sim.join();
  sim.order_quoting(before, std::nullopt, sim.assignment(1));
  sim.order_quoting(sim.newest_ping + 1, std::nullopt, sim.assignment(1));
  CHECK(sim.orders.empty());
  sim.order_quoting(sim.newest_ping - 1, std::nullopt, sim.assignment(1));  // The Hello.
  CHECK(sim.orders.size() == 1);
}

TEST_CASE("a Prepare's deadline counts from the quoted ping", "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.order(sim.assignment(1));
  const auto quoted = sim.newest_ping;
  sim.advance(3s);
  sim.order_quoting(quoted, std::nullopt, Prepare{{1, 1}, "drained", 30s});
  REQUIRE(sim.orders.size() == 2);
  CHECK(std::get<Prepare>(sim.orders[1]).left == 27s);
}

TEST_CASE("Hello tells what is held", "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  CHECK_FALSE(sim.hellos[0].held.round.has_value());
  sim.order(sim.assignment(5));
  sim.report(Started{{1, 5}});
  sim.order(Stop{.round = {1, 5}, .gone = {{"other"}}});
  sim.order(Stop{.round = {1, 6}});
  sim.drop(sim.voice);
  sim.connect(sim.dialled.back());
  const auto& held = sim.hellos.back().held;
  CHECK(held.round == RoundId{1, 5});
  CHECK(held.highest == RoundId{1, 6});
  CHECK(held.attempts == 5);
  CHECK(held.restarts == 2);
  CHECK(held.nodes == 3);
  CHECK(held.started);
  CHECK(held.unbroken);
  CHECK_FALSE(held.succeeded);
  CHECK_FALSE(held.empty);
  CHECK(held.gone == std::vector<Incarnation>{{"other"}});
}

TEST_CASE("a lease that ended after the round was over breaks what is held all the same",
          "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.order(sim.assignment(1));
  sim.report(Empty{{1, 1}, {}, {}});
  sim.drop(sim.voice);
  sim.advance(10s);
  CHECK(sim.fences.empty());
  sim.connect(sim.dialled.back());
  CHECK_FALSE(sim.hellos.back().held.unbroken);
}

TEST_CASE("what was reported of a round is said again by each Hello until a later Assignment",
          "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.order(sim.assignment(1));
  sim.report(Acknowledged{{1, 1}});
  sim.report(Failed{{1, 1}, {.rank = {1}}, 2});
  sim.report(Failed{{1, 1}, {.rank = {2}}, 2});
  sim.report(Saving{{1, 1}, 2});
  sim.report(Saving{{1, 1}, 1});
  sim.drop(sim.voice);
  sim.report(Stopped{{1, 1}});  // While nobody listens.
  sim.join();
  const auto held = sim.hellos.back().held;
  CHECK(held.acknowledged);
  CHECK(held.failures.size() == 2);
  CHECK(held.stopped);
  CHECK(sim.reports.size() == 1);
  CHECK(count<Saving>(sim.reports) == 1);
  sim.report(Empty{{1, 1}, {{{1}, {.signal = SIGKILL}}}, {}});
  sim.order(sim.assignment(2));
  sim.drop(sim.voice);
  sim.join();
  CHECK(sim.reports.empty());
  CHECK_FALSE(sim.hellos.back().held.acknowledged);
  CHECK(sim.hellos.back().held.failures.empty());
  CHECK(sim.hellos.back().held.victims.empty());
}

TEST_CASE("what the server says that agents should keep for it is told in Hello",
          "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  auto given = sim.assignment(1);
  given.node_rank = {2};
  given.excluded = {"sick"};
  sim.order(given);
  sim.order(Keep{.sizes = std::pair{2U, 4U}, .drained = true, .ended = true});
  sim.hear(Waiting{"a spare", RoundId{1, 7}});
  sim.drop(sim.voice);
  sim.join();
  const auto& held = sim.hellos.back().held;
  CHECK(held.node_rank == NodeRank{2});
  CHECK(held.kept == Keep{.sizes = std::pair{2U, 4U}, .drained = true, .ended = true});
  CHECK(held.excluded == std::vector<std::string>{"sick"});
  CHECK(held.highest == RoundId{1, 7});
}

TEST_CASE("a Stop of a round that is over is answered with its end again", "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  sim.order(sim.assignment(1));
  sim.report(Empty{{1, 1}, {}, {}});
  sim.order(Stop{.round = {1, 1}});
  CHECK(sim.orders.size() == 1);
  CHECK(count<Empty>(sim.reports) == 2);
}

TEST_CASE("of the workers' progress only the newest is said again", "[agent][attendee]") {
  AttendeeSim sim;
  sim.join();
  auto given = sim.assignment(1);
  given.best_step = 70;
  given.fruitless = 2;
  sim.order(given);
  for (std::uint64_t step = 1; step < 100; ++step) {
    Progress progress{{1, 1}, {}};
    progress.workers.push_back({.rank = {0}, .step = step, .saves = 0, .phase = {}, .quiet = {}});
    sim.report(std::move(progress));
  }
  sim.drop(sim.voice);
  sim.connect(sim.dialled.back());
  CHECK(sim.hellos.back().held.best_step == 70);
  CHECK(sim.hellos.back().held.fruitless == 2);
  REQUIRE(count<Progress>(sim.reports) == 1);
  CHECK(std::get<Progress>(sim.reports.back()).workers[0].step == 99);
}

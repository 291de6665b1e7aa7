#include "tests/agent/group_sim.hpp"

#include <catch2/catch.hpp>

using namespace muster;
using namespace muster::agent;
using namespace std::chrono_literals;

TEST_CASE("a round that goes well ends when all workers exited 0 and nothing is left",
          "[agent][group]") {
  GroupSim sim(2);
  sim.assign(1);
  CHECK(sim.hosted == 1);
  sim.exit(0, {});
  CHECK(sim.reports == Reports{"started"});
  sim.exit(1, {});
  CHECK(sim.reports == Reports{"started", "succeeded", "empty"});
  CHECK(sim.signalled.empty());
  CHECK(sim.kills == 0);
}

TEST_CASE("the agent of node rank 0 hosts the store, unless the server does", "[agent][group]") {
  GroupSim sim(2);
  SECTION("node rank 0") {
    sim.assign(1, 0, 2);
    CHECK(sim.hosted == 1);
    CHECK(sim.knocks == 0);
    CHECK(sim.alive.size() == 2);
  }
  SECTION("another") {
    sim.assign(1, 1, 2);
    CHECK(sim.hosted == 0);
    CHECK(sim.knocks == 1);
  }
  SECTION("node rank 0 of a job whose store is the server's") {
    sim.store_on_server = true;
    sim.assign(1, 0, 2);
    CHECK(sim.hosted == 0);
    CHECK(sim.knocks == 1);
  }
  SECTION("a node that is alone finds the server's store without a knock") {
    sim.store_on_server = true;
    sim.assign(1, 0, 1);
    CHECK(sim.hosted == 0);
    CHECK(sim.knocks == 0);
    CHECK(sim.alive.size() == 2);
  }
  CHECK(sim.acknowledged == 1);
}

TEST_CASE("workers are started when the master's store was heard", "[agent][group]") {
  GroupSim sim(2);
  sim.assign(1, 1, 2);
  CHECK(sim.alive.empty());
  sim.feed(Group::KnockFailed{"connection refused"});
  sim.advance(1h);  // Nobody said yet that the master is up.
  CHECK(sim.reports.empty());
  sim.feed(Group::KnockHeard{});
  CHECK(sim.alive.size() == 2);
  CHECK(sim.reports == Reports{"started"});
}

TEST_CASE("a master that is up and not heard for five seconds is unreachable", "[agent][group]") {
  GroupSim sim(2);
  sim.assign(1, 1, 2);
  sim.advance(20s);
  sim.feed(Group::MasterIsUp{{1, 1}});
  sim.advance(3s);
  sim.feed(Group::MasterIsUp{{1, 1}});  // Said again by another server: changes nothing.
  SECTION("with the newest knock's cause") {
    sim.feed(Group::KnockFailed{"a to b: timed out"});
    sim.advance(1999ms);
    CHECK(sim.reports.empty());
    sim.advance(1ms);
    CHECK(sim.reports == Reports{"unreachable a to b: timed out"});
  }
  SECTION("without any answer") {
    sim.advance(2s);
    CHECK(sim.reports ==
          Reports{"unreachable the store of the master at head:4711 did not answer to a knock"});
  }
  CHECK(sim.knocking_stopped);
  sim.feed(Group::KnockHeard{});  // Too late.
  CHECK(sim.alive.empty());
  sim.stop(1);
  CHECK(sim.reports.back() == "empty");
}

TEST_CASE("a Stop ends the knocking", "[agent][group]") {
  GroupSim sim(2);
  sim.assign(1, 1, 2);
  sim.stop(1);
  CHECK(sim.knocking_stopped);
  CHECK(sim.reports == Reports{"empty"});
  sim.feed(Group::KnockHeard{});
  CHECK(sim.alive.empty());
}

TEST_CASE("each Stop is answered at once, after what was seen before", "[agent][group]") {
  GroupSim sim(2);
  sim.assign(1);
  sim.exit(0, {.code = 3});
  sim.stop(1);
  CHECK(sim.stopped == 1);
  CHECK(sim.reports == Reports{"started", "failed 0"});
  sim.stop(1);  // From a server that was started meanwhile.
  CHECK(sim.stopped == 2);
}

TEST_CASE("of a round that is stopped before its Assignment came, nothing is here",
          "[agent][group]") {
  GroupSim sim(1);
  sim.stop(4);
  CHECK(sim.stopped == 1);
  CHECK(sim.reports == Reports{"empty"});
}

TEST_CASE("at the lease's end all is killed without grace, and no worker has failed",
          "[agent][group]") {
  GroupSim sim(2);
  sim.killable = false;
  sim.assign(1);
  SECTION("in the grace of a Stop") {
    sim.stop(1);
    sim.feed(Group::LeaseEnded{"silence"});
    CHECK(sim.kills == 1);
  }
  SECTION("while it is killed for another reason") {
    sim.stop(1);
    sim.feed(Group::Hurried{});
    sim.feed(Group::LeaseEnded{"silence"});
  }
  sim.exit(0, {.code = 1});
  sim.exit(1, {.signal = SIGKILL});
  CHECK(sim.reports == Reports{"started", "empty"});
  CHECK(sim.victims.empty());
}

TEST_CASE("where the lease ends first, the loss of the node is what explains its peers' failures",
          "[agent][group]") {
  GroupSim sim(2);
  sim.killable = false;
  sim.assign(1);
  SECTION("nothing had failed before") {
    sim.feed(Group::LeaseEnded{"silence"});
    CHECK(sim.kills == 1);
    CHECK(sim.reports == Reports{"started", "lost: silence"});
    sim.exit(0, {.code = 1});
  }
  SECTION("a worker had failed before") {
    sim.exit(0, {.code = 1});
    sim.feed(Group::LeaseEnded{"silence"});
    CHECK(sim.reports == Reports{"started", "failed 0"});
  }
  sim.stop(1);  // It was sent meanwhile.
  sim.exit(1, {.signal = SIGKILL});
  CHECK(sim.reports.size() == 3);
  CHECK(sim.reports.back() == "empty");
  CHECK(sim.victims.empty());
}

TEST_CASE("a lease that ends between rounds ends nothing", "[agent][group]") {
  GroupSim sim(1);
  sim.feed(Group::LeaseEnded{"silence"});
  CHECK(sim.kills == 0);
  sim.assign(1);
  CHECK(sim.alive.size() == 1);
}

TEST_CASE("a lease that ends while the node knocks ends the knocking", "[agent][group]") {
  GroupSim sim(1);
  sim.assign(1, 1, 2);
  sim.feed(Group::LeaseEnded{"silence"});
  CHECK(sim.knocking_stopped);
  CHECK(sim.reports == Reports{"lost: silence", "empty"});
}

TEST_CASE("the workers are told that the lease is running out", "[agent][group]") {
  GroupSim sim(1);
  sim.feed(Group::LeaseHalfOver{});
  CHECK(sim.told.empty());
  sim.assign(1);
  sim.feed(Group::LeaseHalfOver{});
  CHECK(sim.told == std::vector{Group::TellWorkers::Word::LeaseRunningOut});
}

TEST_CASE("a worker that can't be started is a failure, and the others wait for the Stop",
          "[agent][group]") {
  GroupSim sim(3);
  sim.unstartable = 1;
  sim.assign(1);
  CHECK(sim.alive == std::set<std::uint32_t>{0});
  CHECK(sim.reports == Reports{"failed 1"});
  sim.stop(1);
  CHECK(sim.signalled == Signals{{0, SIGTERM}});
}

TEST_CASE("an Assignment that is not above every round named to us starts nothing",
          "[agent][group]") {
  GroupSim sim(1);
  sim.assign(5);
  sim.exit(0, {});
  CHECK(sim.reports.back() == "empty");
  sim.assign(5);
  sim.assign(4);
  CHECK(sim.alive.empty());
  sim.stop(7);  // Of a round that we never saw.
  sim.assign(6);
  CHECK(sim.alive.empty());
  sim.assign(8);
  CHECK(sim.alive.size() == 1);
}

TEST_CASE("signals that are passed on reach those who live, and change nothing else",
          "[agent][group]") {
  GroupSim sim(3);
  sim.assign(1);
  sim.exit(1, {});
  sim.feed(Group::SignalPassed{SIGUSR1});
  CHECK(sim.signalled == Signals{{0, SIGUSR1}, {2, SIGUSR1}});
  CHECK(sim.reports == Reports{"started"});
}

#include "tests/agent/group_sim.hpp"

#include <catch2/catch.hpp>

using namespace muster;
using namespace muster::agent;
using namespace std::chrono_literals;

TEST_CASE("a failure is reported, and the others run until the Stop", "[agent][group]") {
  GroupSim sim(3);
  sim.assign(1);
  sim.exit(1, {.code = 5});
  CHECK(sim.reports == Reports{"started", "failed 1"});
  CHECK(sim.signalled.empty());
  sim.stop(1);
  CHECK(sim.signalled == Signals{{0, SIGTERM}, {2, SIGTERM}});
  sim.exit(0, {.signal = SIGTERM});
  sim.exit(2, {});
  CHECK(sim.reports == Reports{"started", "failed 1", "empty"});
  REQUIRE(sim.victims.size() == 2);
  CHECK(sim.victims[0].rank == Rank{0});
}

TEST_CASE("after the Stop, who leaves as asked is a victim and who ends otherwise failed by itself",
          "[agent][group]") {
  GroupSim sim(4);
  sim.assign(1);
  sim.exit(0, {.code = 1});
  sim.stop(1);
  sim.exit(1, {.signal = SIGKILL});
  sim.exit(2, {.code = 128 + SIGTERM});
  CHECK(sim.reports == Reports{"started", "failed 0", "failed 1"});
  sim.exit(3, {.code = 0});
  CHECK(sim.reports.back() == "empty");
  REQUIRE(sim.victims.size() == 2);
  CHECK(sim.victims[0].rank == Rank{2});
  CHECK(sim.victims[1].rank == Rank{3});
}

TEST_CASE("two workers that fail before the Stop are both failures", "[agent][group]") {
  GroupSim sim(3);
  sim.assign(1);
  sim.exit(1, {.code = 5});
  sim.exit(2, {.code = 6});
  CHECK(sim.reports == Reports{"started", "failed 1", "failed 2"});
}

TEST_CASE("who does not leave within the grace is killed", "[agent][group]") {
  GroupSim sim(2, 4s);
  sim.assign(1);
  sim.stop(1, SIGINT);
  CHECK(sim.signalled == Signals{{0, SIGINT}, {1, SIGINT}});
  sim.advance(3999ms);
  CHECK(sim.kills == 0);
  sim.advance(1ms);
  CHECK(sim.kills == 1);
  CHECK(sim.reports.back() == "empty");
}

TEST_CASE(
    "what a worker started is asked once the worker has ended, or at three quarters of the grace",
    "[agent][group]") {
  GroupSim sim(2, 8s);
  sim.orphans = 1;
  sim.assign(1);
  sim.stop(1, SIGINT);
  CHECK(sim.tree_signals.empty());
  sim.exit(0, {.signal = SIGINT});
  CHECK(sim.tree_signals == TreeSignals{{SIGTERM, false}});
  sim.advance(5999ms);
  CHECK(sim.tree_signals.size() == 1);
  sim.advance(1ms);
  CHECK(sim.tree_signals == TreeSignals{{SIGTERM, false}, {SIGTERM, true}});
  CHECK(sim.kills == 0);
  sim.advance(2s);
  CHECK(sim.kills == 1);
}

TEST_CASE("what a worker left that failed is asked with the others' stop", "[agent][group]") {
  GroupSim sim(2);
  sim.orphans = 1;
  sim.assign(1);
  sim.exit(0, {.code = 1});
  CHECK(sim.tree_signals.empty());
  sim.stop(1);
  CHECK(sim.tree_signals == TreeSignals{{SIGTERM, false}});
  CHECK(sim.signalled == Signals{{1, SIGTERM}});
}

TEST_CASE("what stopped workers left behind has a quarter of the grace, and no more than its rest",
          "[agent][group]") {
  GroupSim sim(2, 8s);
  sim.orphans = 1;
  sim.assign(1);
  sim.stop(1);
  sim.exit(0, {.signal = SIGTERM});
  SECTION("it leaves when it is asked") {
    sim.orphans_obey = true;
    sim.exit(1, {.signal = SIGTERM});
    CHECK(sim.kills == 0);
  }
  SECTION("it does not") {
    sim.exit(1, {.signal = SIGTERM});
    CHECK(sim.tree_signals.back() == std::pair{SIGTERM, true});
    sim.advance(1999ms);
    CHECK(sim.kills == 0);
    sim.advance(1ms);
    CHECK(sim.kills == 1);
  }
  SECTION("it does not, and the grace is nearly over") {
    sim.advance(7s);
    sim.exit(1, {.signal = SIGTERM});
    sim.advance(999ms);
    CHECK(sim.kills == 0);
    sim.advance(1ms);
    CHECK(sim.kills == 1);
  }
  CHECK(sim.reports.back() == "empty");
}

TEST_CASE("what successful workers left behind has its time, then is asked, then killed",
          "[agent][group]") {
  GroupSim sim({.workers = 1, .grace = 8s, .drain = 3s});
  sim.orphans = 1;
  sim.assign(1);
  sim.exit(0, {});
  CHECK(sim.reports.back() == "succeeded");
  sim.advance(2999ms);
  CHECK(sim.tree_signals.empty());
  sim.advance(1ms);
  CHECK(sim.tree_signals == TreeSignals{{SIGTERM, true}});
  CHECK(sim.kills == 0);
  sim.advance(2s);
  CHECK(sim.kills == 1);
  CHECK(sim.reports.back() == "empty");
}

TEST_CASE("what one worker left at its exit 0 does not run on with the others", "[agent][group]") {
  GroupSim sim({.workers = 2, .grace = 8s, .drain = 3s});
  sim.orphans = 1;
  sim.assign(1);
  sim.exit(0, {});
  sim.advance(2999ms);
  CHECK(sim.tree_signals.empty());
  sim.advance(1ms);
  CHECK(sim.tree_signals == TreeSignals{{SIGTERM, false}});
  sim.advance(2s);
  CHECK(sim.tree_signals == TreeSignals{{SIGTERM, false}, {SIGKILL, false}});
  CHECK_FALSE(sim.group.next_deadline());
  CHECK(sim.alive.size() == 1);
  CHECK(sim.reports == Reports{"started"});
}

TEST_CASE("one exit 0 too long before the others is a failure, where that is asked for",
          "[agent][group]") {
  GroupSim sim({.workers = 3, .success_skew = 5s});
  sim.assign(1);
  sim.exit(1, {});
  sim.advance(3s);
  sim.exit(2, {});  // The first one counts.
  sim.advance(1999ms);
  CHECK(sim.reports == Reports{"started"});
  SECTION("the others end in time") {
    sim.exit(0, {});
    sim.advance(1h);
    CHECK(sim.reports == Reports{"started", "succeeded", "empty"});
  }
  SECTION("they do not") {
    sim.advance(1ms);
    CHECK(sim.reports == Reports{"started", "failed 0"});
    sim.advance(1h);
    CHECK(sim.reports.size() == 2);
  }
}

TEST_CASE("after a signal to the launcher all ends before it is killed itself", "[agent][group]") {
  GroupSim sim({.workers = 1,
                .grace = 60s,
                .last_deadlines = Group::LastDeadlines{.kill = 25s, .give_up = 29s}});
  sim.killable = false;
  sim.assign(1);
  SECTION("the signal brings the stop") {
    sim.feed(Group::LauncherSignalled{});
    sim.advance(1s);
    sim.stop(1);
    sim.advance(23999ms);
  }
  SECTION("the workers are stopping already, for another reason") {
    sim.stop(1);
    sim.advance(20s);
    sim.feed(Group::LauncherSignalled{});
    sim.advance(10s);
    sim.feed(Group::LauncherSignalled{});  // The first one counts.
    sim.advance(14999ms);
  }
  CHECK(sim.kills == 0);
  sim.advance(1ms);
  CHECK(sim.kills > 0);
  sim.advance(3999ms);
  CHECK_FALSE(sim.gave_up);
  sim.advance(1ms);
  CHECK(sim.gave_up);
}

TEST_CASE("what is killed late after a signal to the launcher is not given up at once",
          "[agent][group]") {
  GroupSim sim({.workers = 1,
                .grace = 30s,
                .last_deadlines = Group::LastDeadlines{.kill = 2s, .give_up = 3s}});
  sim.killable = false;
  sim.assign(1);
  sim.feed(Group::LauncherSignalled{});
  sim.advance(10s);  // The workers were asked to save meanwhile.
  CHECK(sim.group.grace_from(sim.now) == 0s);
  sim.stop(1);
  sim.advance(0s);
  CHECK(sim.kills > 0);
  sim.advance(Group::kLeastKillPatience - 1ms);
  CHECK_FALSE(sim.gave_up);
  sim.advance(1ms);
  CHECK(sim.gave_up);
}

TEST_CASE("a signal to the launcher that nobody kills shortens nothing", "[agent][group]") {
  GroupSim sim(1, 60s);
  sim.assign(1);
  sim.stop(1);
  sim.feed(Group::LauncherSignalled{});
  sim.advance(59999ms);
  CHECK(sim.kills == 0);
  sim.advance(1ms);
  CHECK(sim.kills == 1);
}

TEST_CASE("a tree that survives SIGKILL for ten seconds is given up", "[agent][group]") {
  GroupSim sim(1, 1s);
  sim.killable = false;
  sim.assign(1);
  sim.stop(1);
  sim.advance(10'999ms);
  CHECK_FALSE(sim.gave_up);
  CHECK(sim.kills >
        100);  // Swept again and again: something may have been forked during the last sweep.
  sim.advance(1ms);
  CHECK(sim.gave_up);
  CHECK_FALSE(sim.group.next_deadline());
}

TEST_CASE("a Stop of another round stops nothing", "[agent][group]") {
  GroupSim sim(1);
  sim.assign(2);
  sim.stop(1);
  CHECK(sim.signalled.empty());
}

TEST_CASE("a worker gets one stop signal a round", "[agent][group]") {
  GroupSim sim(1);
  sim.assign(1);
  sim.stop(1);
  sim.stop(1, SIGINT);
  CHECK(sim.signalled == Signals{{0, SIGTERM}});
}

TEST_CASE("a user in a hurry ends the grace", "[agent][group]") {
  GroupSim sim(1);
  sim.assign(1);
  sim.stop(1, SIGINT);
  sim.feed(Group::Hurried{});
  CHECK(sim.kills == 1);
  CHECK(sim.reports.back() == "empty");
}

TEST_CASE("a user in a hurry may be quicker than the Stop", "[agent][group]") {
  GroupSim sim(2);
  SECTION("of a round that runs") {
    sim.assign(1);
    sim.feed(Group::Hurried{});
    CHECK(sim.kills == 0);
  }
  SECTION("of a round that is not assigned yet") {
    sim.feed(Group::Hurried{});
    sim.assign(1);
  }
  sim.stop(1, SIGINT);
  CHECK(sim.signalled == Signals{{0, SIGINT}, {1, SIGINT}});
  CHECK(sim.kills == 1);
  CHECK(sim.reports.back() == "empty");
}

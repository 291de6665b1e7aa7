#include "agent/core/worker_group.hpp"

#include <csignal>
#include <set>

#include <catch2/catch.hpp>

using namespace muster;
using namespace std::chrono_literals;
using Group = agent::WorkerGroup;

namespace {

/// Drives a group as the agent would, with workers that are only names: time is virtual, every
/// action is noted.
class GroupSim {
 public:
  explicit GroupSim(std::uint32_t workers, Duration grace = 30s, int preempt_signal = 0)
      : GroupSim({.workers = workers, .grace = grace, .preempt_signal = preempt_signal}) {}
  explicit GroupSim(Group::Settings settings) : group(settings) {}

  void assign(std::uint64_t number, std::uint32_t node_rank = 0, std::uint32_t nodes = 1) {
    Assignment assignment;
    assignment.round = {1, number};
    assignment.node_rank = {node_rank};
    assignment.nodes = nodes;
    assignment.rank_offset = {node_rank * 4};
    assignment.master = {"head", 4711};
    assignment.store_on_server = store_on_server;
    feed(Group::Assigned{assignment});
  }
  void stop(std::uint64_t number, int signal = SIGTERM) {
    feed(Group::StopOrdered{{.round = {1, number}, .signal = signal, .reason = "test"}});
  }
  void exit(std::uint32_t index, ExitStatus status, Cause cause = Cause::WorkerError) {
    alive.erase(index);
    WorkerFailure evidence;
    evidence.cause = cause;
    feed(Group::Exited{index, status, evidence});
    if (alive.empty() && orphans == 0) feed(Group::TreeEmptied{});
  }
  void advance(Duration by) {
    const auto until = now + by;
    while (group.next_deadline() && *group.next_deadline() <= until) {
      now = std::max(now, *group.next_deadline());
      feed(Group::Ticked{});
    }
    now = until;
  }

  void feed(const Group::Event& event) {
    for (const auto& action : group.step(now, event))
      std::visit([this](const auto& what) { act(what); }, action);
  }

  Group group;
  TimePoint now{};
  std::set<std::uint32_t> alive;
  int orphans = 0;
  bool orphans_obey = false;
  std::vector<std::pair<int, bool>> tree_signals;
  std::uint32_t unstartable = 1000;
  bool store_on_server = false;
  int hosted = 0;
  int knocks = 0;
  bool knocking_stopped = false;
  int kills = 0;
  bool killable = true;
  std::vector<std::pair<std::uint32_t, int>> signalled;
  std::vector<std::string> reports;  // Without Acknowledged, Stopped and Saving.
  int acknowledged = 0;
  int stopped = 0;
  std::vector<std::uint32_t> saving;
  std::vector<Group::TellWorkers::Word> told;
  std::vector<Victim> victims;
  bool gave_up = false;

 private:
  void act(const Group::HostStore&) {
    ++hosted;
    feed(Group::Hosted{});
  }
  void act(const Group::Spawn& spawn) {
    if (spawn.index == unstartable) {
      feed(Group::NotSpawned{spawn.index, "exec x: no such file", true});
    } else {
      alive.insert(spawn.index);
      feed(Group::Spawned{spawn.index});
    }
  }
  void act(const Group::Signal& signal) { signalled.emplace_back(signal.index, signal.signal); }
  void act(const Group::SignalTree& signal) {
    tree_signals.emplace_back(signal.signal, signal.of_all);
    if (orphans > 0 && orphans_obey) orphans = 0;
    if (alive.empty() && orphans == 0) feed(Group::TreeEmptied{});
  }
  void act(const Group::KillTree&) {
    ++kills;
    if (!killable) return;
    orphans = 0;
    for (const auto index : std::set(alive)) exit(index, {.signal = SIGKILL});
    if (alive.empty()) feed(Group::TreeEmptied{});
  }
  void act(const Group::Send& send) {
    if (std::holds_alternative<Started>(send.report)) reports.emplace_back("started");
    if (std::holds_alternative<Succeeded>(send.report)) reports.emplace_back("succeeded");
    if (std::holds_alternative<Acknowledged>(send.report)) ++acknowledged;
    if (std::holds_alternative<Stopped>(send.report)) ++stopped;
    if (const auto* saves = std::get_if<Saving>(&send.report)) saving.push_back(saves->left);
    if (const auto* unreachable = std::get_if<Unreachable>(&send.report))
      reports.push_back("unreachable " + unreachable->detail);
    const auto* failed = std::get_if<Failed>(&send.report);
    if (failed != nullptr && failed->failure.cause == Cause::LostNode) {
      reports.push_back("lost: " + failed->failure.detail);
    } else if (failed != nullptr) {
      reports.push_back("failed " + std::to_string(failed->failure.rank.value));
    }
  }
  void act(const Group::Knock&) { ++knocks; }
  void act(const Group::StopKnocking&) { knocking_stopped = true; }
  void act(const Group::TellWorkers& tell) { told.push_back(tell.word); }
  void act(const Group::EndRound& end) {
    reports.emplace_back("empty");
    victims = end.victims;
  }
  void act(const Group::GiveUp&) { gave_up = true; }
};

using Reports = std::vector<std::string>;
using Signals = std::vector<std::pair<std::uint32_t, int>>;
using TreeSignals = std::vector<std::pair<int, bool>>;

}  // namespace

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

TEST_CASE("before the machine is taken away the workers are asked to save, once",
          "[agent][group]") {
  GroupSim sim(3, 30s, SIGUSR1);
  sim.assign(1);
  sim.feed(Group::PrepareOrdered{{{1, 1}, "drained", 30s}});
  CHECK(sim.signalled == Signals{{0, SIGUSR1}, {1, SIGUSR1}, {2, SIGUSR1}});
  CHECK(sim.told == std::vector{Group::TellWorkers::Word::CheckpointNow});
  sim.feed(Group::PrepareOrdered{{{1, 1}, "drained", 20s}});
  CHECK(sim.signalled.size() == 3);
  sim.exit(1, {});
  sim.exit(0, {.signal = SIGUSR1});
  CHECK(sim.saving == std::vector<std::uint32_t>{3, 3, 2, 1});
}

TEST_CASE("a worker whose beacon tells of a checkpoint since it was asked has saved",
          "[agent][group]") {
  GroupSim sim(3);
  sim.assign(1);
  sim.feed(Group::BeaconHeard{0, 4, false});  // Saves now and then.
  sim.feed(Group::BeaconHeard{1, 0, true});   // Looks for requests.
  sim.feed(Group::BeaconHeard{2, 0, false});  // Only tells its steps: it would not save.
  CHECK(sim.saving.empty());
  sim.feed(Group::PrepareOrdered{{{1, 1}, "drained", 30s}});
  sim.feed(Group::BeaconHeard{0, 4, false});
  CHECK(sim.saving == std::vector<std::uint32_t>{2});
  sim.feed(Group::BeaconHeard{0, 5, false});
  sim.feed(Group::BeaconHeard{0, 6, false});
  CHECK(sim.saving == std::vector<std::uint32_t>{2, 1});
  sim.feed(Group::BeaconHeard{1, 1, true});
  CHECK(sim.saving == std::vector<std::uint32_t>{2, 1, 0});
  for (std::uint32_t index = 0; index < 2; ++index) sim.exit(index, {});
  CHECK(sim.reports == Reports{"started"});  // They have not finished.
}

TEST_CASE("a worker that gets a signal has saved also when its beacon says so", "[agent][group]") {
  GroupSim sim(2, 30s, SIGUSR1);
  sim.assign(1);
  sim.feed(Group::PrepareOrdered{{{1, 1}, "drained", 30s}});
  sim.feed(Group::BeaconHeard{1, 1, false});
  CHECK(sim.saving == std::vector<std::uint32_t>{2, 1});
}

TEST_CASE("what a beacon told in one round says nothing in the next", "[agent][group]") {
  GroupSim sim(1);
  sim.assign(1);
  sim.feed(Group::BeaconHeard{0, 4, true});
  sim.stop(1);
  sim.exit(0, {.signal = SIGTERM});
  sim.assign(2);
  sim.feed(Group::PrepareOrdered{{{1, 2}, "drained", 30s}});
  CHECK(sim.saving == std::vector<std::uint32_t>{0});
}

TEST_CASE("a worker that saved and left has neither failed nor finished", "[agent][group]") {
  GroupSim sim(2, 30s, SIGUSR1);
  sim.assign(1);
  sim.feed(Group::PrepareOrdered{{{1, 1}, "drained", 30s}});
  sim.exit(0, {});
  sim.exit(1, {.signal = SIGUSR1});
  CHECK(sim.reports == Reports{"started"});
  sim.stop(1);
  CHECK(sim.reports == Reports{"started", "empty"});
}

TEST_CASE("a worker that is killed by the system while it should save has failed",
          "[agent][group]") {
  GroupSim sim(1, 30s, SIGUSR1);
  sim.assign(1);
  sim.feed(Group::PrepareOrdered{{{1, 1}, "drained", 30s}});
  sim.exit(0, {.signal = SIGKILL}, Cause::OutOfMemory);
  CHECK(sim.reports == Reports{"started", "failed 0"});
}

TEST_CASE("how a worker leaves that was asked to save is its own affair", "[agent][group]") {
  GroupSim sim(2, 30s, SIGUSR1);
  sim.assign(1);
  sim.feed(Group::PrepareOrdered{{{1, 1}, "drained", 30s}});
  sim.exit(0, {.code = 1});
  sim.exit(1, {.code = 1}, Cause::PeerLoss);
  CHECK(sim.reports == Reports{"started"});
  CHECK(sim.saving == std::vector<std::uint32_t>{2, 1, 0});
}

TEST_CASE("without a signal that asks the workers to save nobody waits for that",
          "[agent][group]") {
  GroupSim sim(1);
  sim.assign(1);
  sim.feed(Group::PrepareOrdered{{{1, 1}, "drained", 30s}});
  CHECK(sim.signalled.empty());
  CHECK(sim.told.size() == 1);
  sim.exit(0, {});
  CHECK(sim.saving == std::vector<std::uint32_t>{0, 0});
  CHECK(sim.reports == Reports{"started", "succeeded", "empty"});
}

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

TEST_CASE("signals that are passed on reach those who live, and change nothing else",
          "[agent][group]") {
  GroupSim sim(3);
  sim.assign(1);
  sim.exit(1, {});
  sim.feed(Group::SignalPassed{SIGUSR1});
  CHECK(sim.signalled == Signals{{0, SIGUSR1}, {2, SIGUSR1}});
  CHECK(sim.reports == Reports{"started"});
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

#include "tests/rendezvous/core/job_harness.hpp"

#include <csignal>

#include <catch2/catch.hpp>

using namespace muster;
using namespace muster::rendezvous;
using namespace std::chrono_literals;
using test::nodes;
using test::running;
using test::Sim;

namespace {

/// A running job of these nodes that say nothing by themselves any more.
Sim& silent(Sim& sim, const std::vector<std::string>& names) {
  running(sim, names);
  for (const auto& name : names) sim[name].slow = true;
  return sim;
}

}  // namespace

TEST_CASE("a job has succeeded when all workers of all nodes have, and nothing is left of them",
          "[rendezvous][verdict]") {
  Sim sim(nodes(2, 2));
  sim.join("a");
  sim.join("b");
  sim.succeed("a");
  CHECK_FALSE(sim["a"].verdict);
  sim.say("b", Succeeded{sim["b"].round()});
  CHECK_FALSE(sim["a"].verdict);
  CHECK(sim.view().phase == "draining");
  sim.say("b", Empty{sim["b"].round(), {}, {}});
  REQUIRE(sim["a"].verdict);
  CHECK(sim["a"].verdict->exit_code == 0);
  CHECK(sim["b"].verdict->exit_code == 0);
  CHECK(sim["b"].dismissed);
}

TEST_CASE("the first cause is decided when every node has answered the Stop or is gone",
          "[rendezvous][verdict]") {
  Sim sim(nodes(3, 3));
  silent(sim, {"a", "b", "c"});
  sim.fail("b", {.code = 1}, Cause::WorkerError);
  for (const auto* name : {"a", "b", "c"}) CHECK(sim[name].stops.size() == 1);
  sim.empty("b");
  sim.fail("a", {.signal = SIGKILL}, Cause::OutOfMemory);  // Seen before the Stop came there.
  sim.empty("a");
  CHECK_FALSE(sim["a"].verdict);
  SECTION("the last one's answer") { sim.empty("c"); }
  SECTION("what fails after all had answered explains nothing") {
    sim.say("c", Stopped{sim["c"].round()});
    sim.fail("c", {.code = 7}, Cause::OutOfMemory);
    sim.empty("c");
  }
  REQUIRE(sim["a"].verdict);
  CHECK(sim["a"].verdict->exit_code == 128 + SIGKILL);
  CHECK(sim["a"].verdict->cause->node == "a");
  CHECK(sim["a"].verdict->others[0].node == "b");
}

TEST_CASE("a cause that was decided stands, whatever is excused later", "[rendezvous][verdict]") {
  Sim sim(nodes(3, 3));
  silent(sim, {"a", "b", "c"});
  const auto round = sim["a"].round();
  sim.fail("c", {.code = 1}, Cause::PeerLoss);
  sim.fail("b", {.code = 7}, Cause::WorkerError);
  for (const auto* name : {"a", "b", "c"}) sim.say(name, Stopped{round});
  sim.fail("a", {.signal = SIGKILL}, Cause::OutOfMemory);  // Too late to explain anything.
  sim.say("c", Leaving{SIGTERM, true});
  for (const auto* name : {"a", "b", "c"}) sim.empty(name);
  REQUIRE(sim["a"].verdict);
  CHECK(sim["a"].verdict->cause->status->code == 7);
}

TEST_CASE("causes rank, and within a class the first to arrive is named", "[rendezvous][verdict]") {
  const auto [better, worse] =
      GENERATE(table<Cause, Cause>({{Cause::OutOfMemory, Cause::Hardware},
                                    {Cause::Hardware, Cause::OutsideSignal},
                                    {Cause::OutsideSignal, Cause::WorkerError},
                                    {Cause::WorkerError, Cause::PeerLoss}}));
  Sim sim(nodes(2, 2));
  silent(sim, {"a", "b"});
  sim["b"].hello.slots = 1;
  sim.fail("a", {.code = 3}, worse);
  sim.fail("b", {.code = 4}, better);
  sim.empty("a");
  sim.empty("b");
  CHECK(sim["a"].verdict->exit_code == 4);
}

TEST_CASE("a lost node is the cause, and its peers' failures are free", "[rendezvous][verdict]") {
  Sim sim(nodes(2, 3));
  silent(sim, {"a", "b", "c"});
  sim.fail("a", {.code = 1}, Cause::PeerLoss);
  sim.fail("b", {.code = 1}, Cause::WorkerError);
  sim.farewell("c");
  for (const auto* name : {"a", "b"}) {
    sim.empty(name);
    CHECK_FALSE(sim[name].verdict);
  }
  REQUIRE(sim["a"].assignments.size() == 2);
  CHECK(sim["a"].assignment().restarts == 0);
  CHECK(sim["a"].assignment().nodes == 2);
  CHECK(sim.noted("first cause: node c was lost: killed by SIGKILL"));
}

TEST_CASE("a node that had answered the Stop before it was lost is not the cause",
          "[rendezvous][verdict]") {
  Sim sim(nodes(2, 3));
  silent(sim, {"a", "b", "c"});
  sim.fail("a", {.code = 6});
  sim.say("c", Stopped{sim["c"].round()});
  sim.farewell("c");
  sim.empty("a");
  sim.empty("b");
  REQUIRE(sim["a"].verdict);
  CHECK(sim["a"].verdict->exit_code == 6);
}

TEST_CASE("a failure is charged once for the job", "[rendezvous][verdict]") {
  Sim sim(nodes(2, 2, 1));
  silent(sim, {"a", "b"});
  sim.fail("a", {.code = 5});
  sim.fail("b", {.code = 6});
  sim.empty("a");
  sim.empty("b");
  REQUIRE(sim["a"].assignments.size() == 2);
  CHECK(sim["a"].assignment().restarts == 1);
  CHECK(sim["a"].assignment().attempt == 1);
  CHECK(sim["a"].assignment().master.port == 2000);
  sim.start("a");
  sim.fail("a", {.code = 5});
  sim.empty("a");
  sim.empty("b");
  REQUIRE(sim["b"].verdict);
  CHECK(sim["b"].verdict->exit_code == 5);
  CHECK(sim["b"].verdict->attempts == 2);
  CHECK(sim["b"].verdict->restarts == 1);
  CHECK(sim["b"].verdict->summary == "rank 0 on a exited with code 5");
}

TEST_CASE("if no worker of the job ever started, a failure ends it whatever the budget",
          "[rendezvous][verdict]") {
  Sim sim(nodes(2, 2, 5));
  for (const auto* name : {"a", "b"}) {
    sim.add(name).slow = true;
    sim.greet(name);
  }
  WorkerFailure failure;
  failure.user_error = GENERATE(true, false);
  sim.say("a", Failed{sim["a"].round(), failure, 0});
  sim.empty("a");
  sim.empty("b");
  CHECK(sim["b"].verdict->exit_code == (failure.user_error ? 2 : 1));
}

TEST_CASE("a node whose workers all succeeded before it was lost has succeeded",
          "[rendezvous][verdict]") {
  Sim sim(nodes(2, 2));
  silent(sim, {"a", "b"});
  sim.say("a", Succeeded{sim["a"].round()});
  sim.farewell("a");
  CHECK(sim["b"].stops.empty());
  sim.succeed("b");
  CHECK(sim["b"].verdict->exit_code == 0);
}

TEST_CASE("... unless a Stop of that round was sent", "[rendezvous][verdict]") {
  Sim sim(nodes(1, 3));
  silent(sim, {"a", "b", "c"});
  sim.say("a", Succeeded{sim["a"].round()});
  sim.fail("b", {.code = 1}, Cause::PeerLoss);
  sim.farewell("a");
  sim.empty("b");
  sim.empty("c");
  CHECK_FALSE(sim["b"].verdict);
  CHECK(sim["b"].assignments.size() == 2);
}

TEST_CASE("after a charged failure the next round backs off", "[rendezvous][verdict]") {
  auto settings = nodes(2, 2, 3);
  settings.restart_backoff = 5s;
  Sim sim(settings);
  sim.join("a");
  sim.join("b");
  sim.fail("a", {.code = 5});
  sim.advance(4999ms);
  CHECK(sim["a"].assignments.size() == 1);
  sim.advance(1ms);
  CHECK(sim["a"].assignments.size() == 2);
}

TEST_CASE("agents are dismissed when all know the verdict", "[rendezvous][verdict]") {
  Sim sim(nodes(2, 2));
  silent(sim, {"a", "b"});
  sim.succeed("a");
  sim.succeed("b");
  sim.say("a", VerdictSeen{});
  CHECK_FALSE(sim["a"].dismissed);
  SECTION("the last one says so") {
    sim.say("b", VerdictSeen{});
    CHECK(sim["a"].dismissed);
  }
  SECTION("or 2 s are over") {
    sim.advance(1999ms);
    CHECK_FALSE(sim["a"].dismissed);
    sim.advance(1ms);
    CHECK(sim["a"].dismissed);
  }
}

TEST_CASE("the node that hosts the server leaves last", "[rendezvous][verdict]") {
  Sim sim(nodes(2, 2));
  sim.add("a").hello.hosts_server = true;
  sim.greet("a");
  sim.join("b");
  sim.succeed("a");
  sim["b"].slow = true;
  sim.succeed("b");
  CHECK_FALSE(sim["a"].dismissed);
  sim.say("b", VerdictSeen{});
  CHECK(sim["b"].dismissed);
  CHECK(sim["a"].dismissed);
  // The order of the two: b's leave came first.
  std::vector<LinkId> dismissals;
  bool ended = false;
  for (const auto& action : sim.actions()) {
    if (const auto* send = std::get_if<Rendezvous::Send>(&action);
        send != nullptr && std::holds_alternative<Dismissal>(send->message))
      dismissals.push_back(send->link);
    ended = ended || std::holds_alternative<Rendezvous::Ended>(action);
  }
  CHECK(dismissals == std::vector{LinkId{2}, LinkId{1}});
  CHECK(ended);
}

TEST_CASE("spares are dismissed with the verdict", "[rendezvous][verdict]") {
  Sim sim(nodes(1, 1));
  sim.join("a");
  sim.join("spare");
  sim.succeed("a");
  CHECK(sim["spare"].verdict->exit_code == 0);
  CHECK(sim["spare"].dismissed);
}

TEST_CASE("without a launch tag the id is free as soon as the job has ended",
          "[rendezvous][verdict]") {
  Sim sim(nodes(1, 1));
  sim.join("a");
  sim.succeed("a");
  CHECK(sim["a"].dismissed);
  sim.join("b");
  CHECK(sim["b"].assignments.size() == 1);
  SECTION("but its own nodes are told") {
    auto old = sim["a"].hello;
    sim.add("a").hello.incarnation = old.incarnation;
    sim.greet("a");
    CHECK(sim["a"].verdict->exit_code == 0);
    CHECK(sim["a"].dismissed);
  }
}

TEST_CASE("a late node of the launch is told the verdict for an hour", "[rendezvous][verdict]") {
  Sim sim(nodes(1, 1));
  sim.tag = "77.0.0";
  sim.join("a");
  sim.fail("a", {.code = 9});
  REQUIRE(sim["a"].verdict);
  CHECK(sim.view().phase == "failed");
  sim.advance(59min);
  sim.join("late");
  CHECK(sim["late"].verdict->exit_code == 9);
  CHECK(sim["late"].dismissed);
  CHECK(sim["late"].assignments.empty());
  sim.advance(1min);
  CHECK_FALSE(sim.knows_job());
}

TEST_CASE("a node that comes while the verdict is told gets it as well", "[rendezvous][verdict]") {
  Sim sim(nodes(2, 2));
  sim.tag = "77.0.0";
  silent(sim, {"a", "b"});
  sim.succeed("a");
  sim.succeed("b");
  sim.join("late");
  CHECK(sim["late"].verdict->exit_code == 0);
}

TEST_CASE("a member that was away is told the verdict when it comes back",
          "[rendezvous][verdict]") {
  Sim sim(nodes(2, 2));
  silent(sim, {"a", "b"});
  sim.drop("a");
  sim.freeze("a");
  sim.say("b", Leaving{SIGINT});
  sim.empty("b");
  sim.advance(12500ms);
  REQUIRE(sim["b"].verdict);
  sim["a"].hello.held.empty = true;
  sim.greet("a");
  CHECK(sim["a"].verdict->exit_code == 128 + SIGINT);
}

TEST_CASE("a node that could not end its processes is excluded", "[rendezvous][verdict]") {
  Sim sim(nodes(1, 3, 3));
  silent(sim, {"a", "b", "c"});
  sim.fail("a", {.code = 5});
  sim.say("b", Stuck{sim["b"].round(), {77, 78}});
  sim["b"].hello.held.empty = true;
  sim.empty("a");
  sim.empty("c");
  CHECK(sim["a"].assignment().nodes == 2);
  CHECK(sim["b"].assignments.size() == 1);
  CHECK(sim.state_of("b") == "excluded");
}

TEST_CASE("when no other node is left, stuck processes end the job", "[rendezvous][verdict]") {
  Sim sim(nodes(1, 1, 3));
  silent(sim, {"a"});
  sim.fail("a", {.code = 5});
  sim.say("a", Stuck{sim["a"].round(), {77, 78}});
  REQUIRE(sim["a"].verdict);
  CHECK(sim["a"].verdict->exit_code == 5);
  CHECK(sim["a"].verdict->summary ==
        "rank 0 exited with code 5; these processes could not be killed: 77 78");
}

TEST_CASE("to very many nodes a verdict carries the end of its evidence", "[rendezvous][verdict]") {
  const auto count = GENERATE(64U, 65U);
  Sim sim(nodes(count, count));
  for (std::uint32_t node = 0; node < count; ++node) sim.join("n" + std::to_string(1000 + node));
  WorkerFailure failure;
  failure.node_rank = sim["n1000"].assignment().node_rank;
  failure.rank = sim["n1000"].assignment().rank_offset;
  failure.status = ExitStatus{.code = 1};
  failure.traceback = std::string(100'000, 'x') + "the end";
  failure.stderr_lines = std::vector<std::string>(200, std::string(100, 'y'));
  failure.stderr_lines.back() = "the last";
  sim.say("n1000", Failed{sim["n1000"].round(), failure, 1});
  const auto& cause = *sim["n1001"].verdict->cause;
  CHECK(cause.traceback.size() == (count == 64 ? 100'007U : 4096U));
  CHECK(cause.traceback.ends_with("the end"));
  CHECK(cause.stderr_lines.size() == (count == 64 ? 200U : 41U));
  CHECK(cause.stderr_lines.back() == "the last");
}

TEST_CASE("of a crowd that fails a verdict names a few, and the first cause",
          "[rendezvous][verdict]") {
  Sim sim(nodes(1, 1));
  sim.add("a").hello.slots = 500;
  sim.greet("a");
  sim["a"].slow = true;
  for (std::uint32_t rank = 0; rank < 400; ++rank)
    sim.fail("a", {.code = 1}, Cause::PeerLoss, rank);
  sim.fail("a", {.code = 3}, Cause::WorkerError, 400);
  sim.empty("a");
  CHECK(sim["a"].verdict->cause->rank == Rank{400});
  CHECK(sim["a"].verdict->others.size() == 64);
}

TEST_CASE(
    "of a crowd that lost its peers the one that failed by itself is found after the Stop, too",
    "[rendezvous][verdict]") {
  Sim sim(nodes(1, 1));
  sim.add("a").hello.slots = 500;
  sim.greet("a");
  sim["a"].slow = true;
  sim.fail("a", {.code = 1}, Cause::PeerLoss, 0);
  sim.say("a", Stopped{sim["a"].round()});  // Now the cause is decided, for want of a better one.
  for (std::uint32_t rank = 1; rank < 400; ++rank)
    sim.fail("a", {.code = 1}, Cause::PeerLoss, rank);
  sim.fail("a", {.signal = SIGSEGV}, Cause::WorkerError, 400);
  sim.fail("a", {.code = 9}, Cause::WorkerError, 401);
  sim.empty("a");
  CHECK(sim["a"].verdict->cause->rank == Rank{400});
}

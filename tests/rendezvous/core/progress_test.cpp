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

JobSettings stubborn(std::uint32_t without_progress, std::uint32_t restarts = 100) {
  auto settings = nodes(2, 2, restarts);
  settings.max_restarts_without_progress = without_progress;
  return settings;
}

void tell(Sim& sim, const std::string& name, std::uint64_t step, std::uint64_t saves = 0,
          Duration quiet = {}) {
  const auto rank = sim[name].assignment().rank_offset;
  sim.say(
      name,
      Progress{sim[name].round(),
               {{.rank = rank, .step = step, .saves = saves, .phase = "train", .quiet = quiet}}});
}

/// One more attempt of a and b, in which a gets to that step and fails.
void attempt(Sim& sim, std::uint64_t step) {
  if (step > 0) tell(sim, "a", step);
  sim.fail("a", {.code = 3});
}

}  // namespace

TEST_CASE("a job whose attempts all fail at one step ends with 93 and names the first cause",
          "[rendezvous][progress]") {
  Sim sim(stubborn(2));
  running(sim, {"a", "b"});
  attempt(sim, 5);
  CHECK_FALSE(sim["a"].verdict);
  attempt(sim, 5);
  REQUIRE(sim["a"].verdict);
  CHECK(sim["a"].verdict->exit_code == 93);
  CHECK(sim["a"].verdict->summary ==
        "no progress: step 5 was never passed in 2 attempts; rank 0 on a exited with code 3");
  CHECK(sim["b"].verdict->cause->node == "a");
}

TEST_CASE("attempts that get further each time go on", "[rendezvous][progress]") {
  Sim sim(stubborn(2));
  running(sim, {"a", "b"});
  for (std::uint64_t step = 1; step < 10; ++step) {
    attempt(sim, step);
    CHECK_FALSE(sim["a"].verdict);
  }
  CHECK(sim["a"].assignment().best_step == 9);
  CHECK(sim["a"].assignment().fruitless == 1);
}

TEST_CASE("workers that never tell a step make no progress", "[rendezvous][progress]") {
  Sim sim(stubborn(3));
  running(sim, {"a", "b"});
  for (int count = 0; count < 2; ++count) attempt(sim, 0);
  CHECK_FALSE(sim["a"].verdict);
  attempt(sim, 0);
  REQUIRE(sim["a"].verdict);
  CHECK(sim["a"].verdict->exit_code == 93);
  CHECK(sim["a"].verdict->summary ==
        "no progress: no worker told of a step in 3 attempts; rank 0 on a exited with code 3");
}

TEST_CASE("without the limit nothing is compared", "[rendezvous][progress]") {
  Sim sim(nodes(2, 2, 3));
  running(sim, {"a", "b"});
  for (int count = 0; count < 4; ++count) attempt(sim, 5);
  REQUIRE(sim["a"].verdict);
  CHECK(sim["a"].verdict->exit_code == 3);
}

TEST_CASE("any worker's step counts, also one that it told only as it failed",
          "[rendezvous][progress]") {
  Sim sim(stubborn(2));
  running(sim, {"a", "b"});
  attempt(sim, 5);
  tell(sim, "b", 6);
  attempt(sim, 1);
  CHECK_FALSE(sim["a"].verdict);
  WorkerFailure failure;
  failure.rank = sim["a"].assignment().rank_offset;
  failure.status = ExitStatus{.code = 3};
  failure.step = 7;
  sim.say("a", Failed{sim["a"].round(), failure, 1});
  CHECK_FALSE(sim["a"].verdict);
  CHECK(sim["b"].assignment().best_step == 7);
}

TEST_CASE("a change of membership is no failed attempt, and what it reached is a step to beat",
          "[rendezvous][progress]") {
  Sim sim(stubborn(2));
  running(sim, {"a", "b"});
  tell(sim, "b", 500);
  REQUIRE(sim.command(RestartJob{}));
  CHECK(sim["a"].assignment().best_step == 500);
  CHECK(sim["a"].assignment().fruitless == 0);
  attempt(sim, 450);
  CHECK_FALSE(sim["a"].verdict);
  attempt(sim, 500);
  REQUIRE(sim["a"].verdict);
  CHECK(sim["a"].verdict->exit_code == 93);
}

TEST_CASE("a node that is lost is no failed attempt", "[rendezvous][progress]") {
  auto settings = stubborn(2);
  settings.min_nodes = 1;
  settings.max_nodes = 3;
  Sim sim(settings);
  running(sim, {"a", "b", "c"});
  sim.farewell("c");
  sim.farewell("b");
  CHECK(sim["a"].assignment().fruitless == 0);
  attempt(sim, 0);
  CHECK_FALSE(sim["a"].verdict);
  attempt(sim, 0);
  REQUIRE(sim["a"].verdict);
  CHECK(sim["a"].verdict->exit_code == 93);
}

TEST_CASE("a server that starts anew knows from the agents how far the job got",
          "[rendezvous][progress]") {
  Sim sim(stubborn(3), test::short_recovery());
  running(sim, {"a", "b"});
  attempt(sim, 5);
  attempt(sim, 5);
  sim.restart_server();
  for (const auto* name : {"a", "b"}) test::back(sim, name);
  attempt(sim, 4);
  REQUIRE(sim["a"].verdict);
  CHECK(sim["a"].verdict->exit_code == 93);
}

TEST_CASE("a limit of one attempt is refused: there is nothing to compare it with",
          "[rendezvous][progress]") {
  Sim sim(stubborn(1));
  sim.join("a");
  REQUIRE(sim["a"].refusal);
  CHECK(sim["a"].refusal->message ==
        "node a: --max-restarts-without-progress 1: at least 2, since there must be attempts to "
        "compare");
}

TEST_CASE("an operator sees how far the job and each node are, and for how long it is quiet",
          "[rendezvous][progress]") {
  Sim sim(nodes(2, 2));
  running(sim, {"a", "b"});
  CHECK_FALSE(sim.view().step);
  CHECK_FALSE(sim.view().nodes[0].progress);
  const auto rank = sim["a"].assignment().rank_offset.value;
  sim.say("a",
          Progress{sim["a"].round(),
                   {{.rank = {rank}, .step = 9, .saves = 0, .phase = "train", .quiet = 1s},
                    {.rank = {rank + 1}, .step = 7, .saves = 0, .phase = "load", .quiet = 3s}}});
  sim.advance(2s);
  const auto view = sim.view();
  CHECK(view.step == 9);
  const auto& node = view.nodes[0].name == "a" ? view.nodes[0] : view.nodes[1];
  REQUIRE(node.progress);
  CHECK(node.progress->slowest == 7);
  CHECK(node.progress->fastest == 9);
  CHECK(node.progress->phase == "load");
  CHECK(node.progress->quiet == 5s);
}

TEST_CASE("by --scale-up checkpoint a batch is taken in when a worker saves",
          "[rendezvous][progress][scale-up]") {
  auto settings = nodes(1, 3);
  settings.scale_up = ScaleUp::Checkpoint;
  Sim sim(settings);
  sim.join("a");
  sim.advance(2s);
  sim.join("b");
  CHECK(sim["b"].waits.back().find("no worker tells when it does") != std::string::npos);
  tell(sim, "a", 1);
  CHECK(sim["b"].waits.back().find("no worker tells") == std::string::npos);
  CHECK(sim["b"].waits.back().find("--scale-up checkpoint") != std::string::npos);
  sim.advance(4s);
  tell(sim, "a", 2, 1);  // The batch may still grow.
  sim.advance(60s);
  tell(sim, "a", 3, 1);
  CHECK(sim["a"].stops.empty());
  tell(sim, "a", 4, 2);
  REQUIRE(sim["a"].stops.size() == 1);
  CHECK(sim["a"].assignment().nodes == 2);
  CHECK(sim["b"].assignment().nodes == 2);
}

TEST_CASE("what was saved before the server started is no checkpoint to scale up at",
          "[rendezvous][progress][scale-up]") {
  auto settings = nodes(1, 3);
  settings.scale_up = ScaleUp::Checkpoint;
  Sim sim(settings, test::short_recovery());
  sim.join("a");
  sim.advance(20s);
  REQUIRE(sim["a"].assignments.size() == 1);
  sim.restart_server();
  test::back(sim, "a");
  sim.join("b");
  sim.advance(20s);
  tell(sim, "a", 9, 5);
  CHECK(sim["a"].stops.empty());
  tell(sim, "a", 10, 6);
  CHECK(sim["a"].stops.size() == 1);
}

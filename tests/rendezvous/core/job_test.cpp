#include "tests/rendezvous/core/job_harness.hpp"

#include <algorithm>
#include <csignal>

#include <catch2/catch.hpp>

using namespace muster;
using namespace muster::rendezvous;
using namespace std::chrono_literals;
using test::nodes;
using test::running;
using test::Sim;

namespace {

std::size_t stores(const Sim& sim) {
  return static_cast<std::size_t>(std::count_if(
      sim.actions().begin(), sim.actions().end(),
      [](const auto& action) { return std::holds_alternative<Rendezvous::OpenStore>(action); }));
}

}  // namespace

TEST_CASE("all are told when the master's store listens", "[rendezvous][job]") {
  Sim sim(nodes(2, 2));
  for (const auto* name : {"a", "b"}) {
    sim.add(name).slow = true;
    sim.greet(name);
  }
  sim.say("b", Acknowledged{sim["b"].round()});
  CHECK_FALSE(sim["b"].master_up);
  sim.say("a", Acknowledged{sim["a"].round()});
  CHECK(sim["b"].master_up);
  CHECK(sim["a"].master_up);
}

TEST_CASE("reports of an older round change nothing", "[rendezvous][job]") {
  Sim sim(nodes(2, 2, 3));
  running(sim, {"a", "b"});
  const auto first = sim["a"].round();
  sim.fail("a", {.code = 5});
  REQUIRE(sim["a"].assignments.size() == 2);
  WorkerFailure failure;
  failure.status = ExitStatus{.code = 9};
  for (const Report& report :
       {Report(Failed{first, failure, 1}), Report(Succeeded{first}), Report(Empty{first, {}, {}}),
        Report(Stopped{first}), Report(Unreachable{first, "x"}), Report(Stuck{first, {1}})})
    sim.say("a", report);
  CHECK(sim["a"].assignments.size() == 2);
  CHECK(sim["b"].stops.size() == 1);
  sim.succeed("a");
  sim.succeed("b");
  CHECK(sim["a"].verdict->exit_code == 0);
}

TEST_CASE("a node that can't reach the store is left out of the next round",
          "[rendezvous][job][knock]") {
  Sim sim(nodes(1, 3));
  running(sim, {"a", "b", "c"});
  sim.say("b", Unreachable{sim["b"].round(), "10.0.0.2 to 10.0.0.1:1001: connection refused"});
  REQUIRE(sim["a"].assignments.size() == 2);
  CHECK(sim["a"].assignment().nodes == 2);
  CHECK(sim["a"].assignment().restarts == 0);
  CHECK(sim.state_of("b") == "excluded");
  CHECK(sim["b"].waits.back().find("10.0.0.2 to 10.0.0.1:1001") != std::string::npos);
}

TEST_CASE("where min forbids that, the job ends and names both ends", "[rendezvous][job][knock]") {
  Sim sim(nodes(2, 2));
  running(sim, {"a", "b"});
  sim.say("b", Unreachable{sim["b"].round(), "10.0.0.2 to 10.0.0.1:1001: connection refused"});
  REQUIRE(sim["a"].verdict);
  CHECK(sim["a"].verdict->exit_code == 75);
  CHECK(sim["a"].verdict->summary.find("10.0.0.2 to 10.0.0.1:1001") != std::string::npos);
}

TEST_CASE("a store that most can't reach is its own node's fault", "[rendezvous][job][knock]") {
  Sim sim(nodes(1, 4));
  running(sim, {"a", "b", "c", "d"});
  for (const auto* name : {"b", "c", "d"}) sim[name].slow = true;
  for (const auto* name : {"b", "c"})
    sim.say(name, Unreachable{sim[name].round(), "no route to 10.0.0.1:1001"});
  for (const auto* name : {"b", "c", "d"}) sim.empty(name);
  CHECK(sim["b"].assignment().nodes == 3);
  CHECK(sim["a"].assignments.size() == 1);
}

TEST_CASE("the endpoint's store opens before the Assignments, and closes when the round is over",
          "[rendezvous][job]") {
  auto settings = nodes(1, 2, 1);
  settings.store_on_server = true;
  Sim sim(settings);
  running(sim, {"a", "b"});
  REQUIRE(stores(sim) == 1);
  const auto& actions = sim.actions();
  const auto opened = std::find_if(actions.begin(), actions.end(), [](const auto& action) {
    return std::holds_alternative<Rendezvous::OpenStore>(action);
  });
  CHECK(std::get<Rendezvous::OpenStore>(*opened).admitted ==
        std::vector<std::string>{"10.0.0.1", "10.0.0.2"});
  const auto assigned = std::find_if(actions.begin(), actions.end(), [](const auto& action) {
    const auto* send = std::get_if<Rendezvous::Send>(&action);
    const auto* directive = send ? std::get_if<Directive>(&send->message) : nullptr;
    return directive != nullptr && std::holds_alternative<Assignment>(directive->order);
  });
  CHECK(opened < assigned);
  CHECK(sim["b"].assignment().store_on_server);

  sim.forget_actions();
  sim["b"].slow = true;
  sim.fail("a", {.code = 1});
  const auto closed = [&] {
    return std::any_of(sim.actions().begin(), sim.actions().end(), [](const auto& action) {
      return std::holds_alternative<Rendezvous::CloseStore>(action);
    });
  };
  CHECK_FALSE(closed());
  sim.empty("b");
  CHECK(closed());
  CHECK(stores(sim) == 1);
}

TEST_CASE("a machine that is lost soon after it joined is passed over, each time for longer",
          "[rendezvous][job][cool-down]") {
  Sim sim(nodes(1, 2));
  sim.join("a");
  sim.join("b");
  for (const auto length : {5s, 10s, 20s}) {
    sim.farewell("b");
    CHECK(sim["a"].assignment().nodes == 1);
    sim.join("b");
    CHECK(sim.state_of("b") == "excluded");
    CHECK(sim["b"].waits.back().find("passed over for a while: lost: killed by SIGKILL") !=
          std::string::npos);
    sim.advance(length - 1ms);
    CHECK(sim["a"].assignment().nodes == 1);
    sim.advance(501ms);
    CHECK(sim["b"].assignment().nodes == 2);
  }
  sim.advance(60s);
  sim.farewell("b");
  sim.join("b");
  sim.advance(500ms);
  CHECK(sim["b"].assignment().nodes == 2);
}

TEST_CASE("a machine that is blamed soon after it joined is passed over, if the job can do without",
          "[rendezvous][job][cool-down]") {
  Sim sim(nodes(1, 2, 9));
  sim.join("a");
  sim.join("b");
  sim.fail("b", {.code = 1});
  CHECK(sim["a"].assignment().nodes == 1);
  CHECK(sim["a"].assignment().excluded == std::vector<std::string>{"machine-b"});
  sim.advance(5500ms);
  CHECK(sim["b"].assignment().nodes == 2);
}

TEST_CASE("where min needs it, a blamed machine goes on at once", "[rendezvous][job][cool-down]") {
  Sim sim(nodes(2, 2, 9));
  sim.join("a");
  sim.join("b");
  sim.fail("b", {.code = 1});
  CHECK(sim["b"].assignments.size() == 2);
  CHECK(sim["b"].assignment().restarts == 1);
}

TEST_CASE("a job that ends for want of a node says which was lost", "[rendezvous][job]") {
  auto settings = nodes(2, 2);
  settings.join_timeout = 60s;
  Sim sim(settings);
  running(sim, {"a", "b"});
  sim.farewell("b", "killed by SIGKILL");
  sim.advance(61s);
  REQUIRE(sim["a"].verdict);
  CHECK(sim["a"].verdict->exit_code == 75);
  CHECK(sim["a"].verdict->summary.find("node b was lost: killed by SIGKILL; no round formed") == 0);
  REQUIRE(sim["a"].verdict->cause);
  CHECK(sim["a"].verdict->cause->node == "b");
}

TEST_CASE("an address that the workers' store turned away is told to all of its round, once",
          "[rendezvous][job]") {
  Sim sim(nodes(2, 2));
  running(sim, {"a", "b"});
  const auto before = sim["b"].waits.size();
  sim.say("a", StoreRefused{sim["a"].round(), "10.9.9.9"});
  sim.say("a", StoreRefused{sim["a"].round(), "10.9.9.9"});
  REQUIRE(sim["b"].waits.size() == before + 1);
  CHECK(sim["b"].waits.back().find("turned away 10.9.9.9") != std::string::npos);
  CHECK(sim["b"].waits.back().find("--store-allow") != std::string::npos);
  sim.feed(Rendezvous::TurnedAway{"job", "10.8.8.8"});  // The store on the server.
  CHECK(sim["a"].waits.back().find("turned away 10.8.8.8") != std::string::npos);
}

TEST_CASE("a second node of a job that can have one is told whose it is", "[rendezvous][job]") {
  auto settings = nodes(1, 1);
  settings.lease = 0s;
  Sim sim(settings);
  sim.join("a");
  sim.settings.lease = 10s;
  sim.join("b");
  REQUIRE(sim["b"].refusal);
  CHECK(sim["b"].refusal->exit_code == 2);
  CHECK(sim["b"].refusal->message.find("one node only, and that is node a") != std::string::npos);
}

TEST_CASE("the first at its endpoint waits join_timeout, no recovery more", "[rendezvous][job]") {
  auto settings = nodes(2, 2);
  settings.join_timeout = 20s;
  Rendezvous::Settings server;
  server.max_lease = 10s;
  Sim sim(settings, server);
  const bool first_here = GENERATE(true, false);
  sim.restart_server(0s, first_here);
  sim.join("a");
  sim.advance(20s);
  CHECK(sim["a"].verdict.has_value() == first_here);
  sim.advance(13s);
  CHECK(sim["a"].verdict);
}

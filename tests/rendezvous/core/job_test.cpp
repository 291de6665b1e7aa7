#include "tests/rendezvous/core/job_harness.hpp"

#include <algorithm>
#include <csignal>

#include <catch2/catch.hpp>

using namespace muster;
using namespace muster::rendezvous;
using namespace std::chrono_literals;
using test::Sim;

namespace {

JobSettings nodes(std::uint32_t min, std::uint32_t max, std::uint32_t restarts = 0) {
  JobSettings settings;
  settings.min_nodes = min;
  settings.max_nodes = max;
  settings.max_restarts = restarts;
  return settings;
}

/// A running job of these nodes, none on probation any more.
Sim& running(Sim& sim, const std::vector<std::string>& names) {
  for (const auto& name : names) sim.join(name);
  sim.advance(61s);
  return sim;
}

std::size_t stores(const Sim& sim) {
  return static_cast<std::size_t>(std::count_if(
      sim.actions().begin(), sim.actions().end(),
      [](const auto& action) { return std::holds_alternative<Rendezvous::OpenStore>(action); }));
}

}  // namespace

// --- Leases. ---

TEST_CASE("each ping is answered by its number", "[rendezvous][lease]") {
  Sim sim(nodes(2, 2));
  sim.join("a");
  CHECK(sim["a"].newest_pong == 1);
  sim.ping("a");
  CHECK(sim["a"].newest_pong == 2);
}

TEST_CASE("ranks are given away 1.25 leases after the last answer", "[rendezvous][lease]") {
  Sim sim(nodes(1, 2));
  sim.join("a");
  sim.join("b");
  sim.advance(3s);
  sim.ping("b");
  sim.freeze("b");
  sim.advance(12499ms);
  CHECK(sim["a"].stops.empty());
  CHECK(sim.state_of("b") == "silent");
  sim.advance(1ms);
  REQUIRE(sim["a"].stops.size() == 1);
  CHECK(sim["a"].stops[0].reason == "node b was lost: its lease ended: no ping for 12.5s");
  CHECK(sim["a"].stops[0].gone == std::vector{sim["b"].hello.incarnation});
  CHECK(sim["a"].assignment().nodes == 1);
}

TEST_CASE("an incarnation whose ranks were given away is answered so, until nothing is left of it",
          "[rendezvous][lease]") {
  Sim sim(nodes(1, 2));
  running(sim, {"a", "b"});
  sim.freeze("b");
  sim.advance(13s);
  sim.ping("b");
  CHECK(sim["b"].gone);
  sim.ping("b");
  CHECK(sim["b"].gone);
  sim.drop("b");
  sim["b"].slow = true;
  sim.greet("b");
  CHECK(sim["b"].gone);
  CHECK(sim["b"].assignments.size() == 1);
  SECTION("it says so on that connection") { sim.empty("b"); }
  SECTION("it says so in its next Hello") {
    sim["b"].hello.held.empty = true;
    sim.greet("b");
  }
  CHECK_FALSE(sim["b"].gone);
  sim["b"].pings = true;
  sim.advance(500ms);
  CHECK(sim["b"].assignment().nodes == 2);
}

TEST_CASE("a closed connection proves nothing", "[rendezvous][lease]") {
  Sim sim(nodes(1, 2));
  running(sim, {"a", "b"});
  sim.drop("b");
  sim.advance(1s);
  CHECK(sim["a"].stops.empty());
  sim.greet("b");
  sim.advance(60s);
  CHECK(sim["a"].stops.empty());
  CHECK(sim["b"].assignments.size() == 1);
}

TEST_CASE("a farewell frees the ranks at once", "[rendezvous][lease]") {
  Sim sim(nodes(1, 2));
  running(sim, {"a", "b"});
  sim.farewell("b");
  CHECK(sim["a"].assignment().nodes == 1);
  const auto& last = sim.actions();
  CHECK(std::any_of(last.begin(), last.end(), [](const auto& action) {
    return std::holds_alternative<Rendezvous::Acknowledge>(action);
  }));
  SECTION("and what comes of that incarnation afterwards is answered with gone") {
    sim["b"].alive = true;
    sim.greet("b");
    CHECK(sim["b"].gone);
    CHECK(sim["a"].assignment().nodes == 1);
  }
}

TEST_CASE("a member whose Hello does not hold the standing round is sent its Assignment again",
          "[rendezvous][lease]") {
  Sim sim(nodes(2, 2));
  sim.join("a");
  sim.add("b").slow = true;
  sim.greet("b");
  const auto lost = sim["b"].round();
  sim["b"].assignments.clear();
  sim["b"].hello.held = {};
  sim.greet("b");
  REQUIRE(sim["b"].assignments.size() == 1);
  CHECK(sim["b"].round() == lost);
  CHECK(sim["a"].stops.empty());
}

TEST_CASE("a Stop that did not arrive is sent again", "[rendezvous][lease]") {
  Sim sim(nodes(1, 3));
  running(sim, {"a", "b", "c"});
  sim["b"].slow = true;
  sim.drop("b");
  sim.farewell("c");
  CHECK(sim["b"].stops.empty());
  sim.greet("b");
  REQUIRE(sim["b"].stops.size() == 1);
  sim.empty("b");
  CHECK(sim["b"].assignment().nodes == 2);
}

TEST_CASE("a member that never had the round that is stopped is empty of it",
          "[rendezvous][lease]") {
  Sim sim(nodes(1, 3));
  sim.join("a");
  sim.join("b");
  sim.add("c").slow = true;
  sim.greet("c");
  sim.drop("c");
  sim["c"].assignments.clear();
  sim["c"].hello.held = {};
  sim.farewell("b");
  CHECK(sim["a"].assignments.size() == 1);
  sim["c"].slow = false;
  sim.greet("c");
  CHECK(sim["c"].stops.empty());
  CHECK(sim["a"].assignments.size() == 2);
  CHECK(sim["c"].assignment().nodes == 2);
}

TEST_CASE("an old Hello that comes late replaces no newer connection", "[rendezvous][lease]") {
  Sim sim(nodes(1, 2));
  running(sim, {"a", "b"});
  auto old = sim["b"].hello;
  old.ping = 1;
  old.held = {};
  sim.feed(Rendezvous::Greeted{LinkId{900}, old, "10.0.0.2", "10.0.0.100"});
  sim.feed(Rendezvous::Heard{LinkId{900}, Leaving{SIGTERM}});
  CHECK(sim["a"].stops.empty());
  sim.advance(30s);
  CHECK(sim["a"].stops.empty());
}

TEST_CASE("a lease that ended at the agent is a lost node, though the server had not given it up",
          "[rendezvous][lease]") {
  Sim sim(nodes(1, 2));
  running(sim, {"a", "b"});
  sim["b"].slow = true;
  sim.drop("b");
  sim["b"].hello.held.unbroken = false;
  sim["b"].hello.held.empty = GENERATE(true, false);
  sim.greet("b");
  REQUIRE(sim["a"].stops.size() == 1);
  if (!sim["b"].hello.held.empty) sim.empty("b");
  CHECK(sim["b"].assignment().restarts == 0);
  CHECK(sim["b"].assignment().nodes == 2);
  CHECK(sim.noted("first cause: node b was lost: its lease ended"));
}

// --- A round. ---

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

// --- Leaving. ---

TEST_CASE("leaving is not closing: the others go on at the new size",
          "[rendezvous][job][leaving]") {
  Sim sim(nodes(1, 3));
  running(sim, {"a", "b", "c"});
  sim.say("b", Leaving{SIGINT});
  REQUIRE(sim["b"].stops.size() == 1);
  CHECK(sim["b"].stops[0].signal == SIGINT);
  CHECK(sim["a"].stops[0].signal == SIGTERM);
  sim.advance(999ms);
  CHECK(sim["a"].assignments.size() == 1);
  sim.advance(1ms);
  CHECK(sim["a"].assignment().nodes == 2);
  CHECK(sim["a"].assignment().restarts == 0);
  REQUIRE(sim["b"].verdict);
  CHECK(sim["b"].verdict->alone);
  CHECK(sim["b"].verdict->exit_code == 128 + SIGINT);
  CHECK(sim["b"].dismissed);
}

TEST_CASE("leavers within a second are one event", "[rendezvous][job][leaving]") {
  Sim sim(nodes(1, 3));
  running(sim, {"a", "b", "c"});
  sim.say("b", Leaving{SIGINT});
  sim.advance(900ms);
  sim.say("c", Leaving{SIGINT});
  sim.advance(100ms);
  CHECK(sim["a"].assignments.size() == 2);
  CHECK(sim["a"].assignment().nodes == 1);
}

TEST_CASE("when all leave, the job ends everywhere with the signal's code",
          "[rendezvous][job][leaving]") {
  Sim sim(nodes(1, 3));
  running(sim, {"a", "b", "c"});
  for (const auto* name : {"a", "b", "c"}) sim[name].slow = true;
  for (const auto* name : {"a", "b", "c"}) sim.say(name, Leaving{SIGTERM});
  for (const auto* name : {"a", "b", "c"}) CHECK(sim[name].stops.size() == 1);
  for (const auto* name : {"a", "b", "c"}) sim.empty(name);
  for (const auto* name : {"a", "b", "c"}) {
    REQUIRE(sim[name].verdict);
    CHECK(sim[name].verdict->exit_code == 128 + SIGTERM);
    CHECK_FALSE(sim[name].verdict->alone);
  }
}

TEST_CASE("a launcher that is signalled ends the job where too few remain",
          "[rendezvous][job][leaving]") {
  Sim sim(nodes(2, 2));
  running(sim, {"a", "b"});
  sim.say("b", Leaving{SIGINT});
  CHECK(sim["a"].verdict->exit_code == 128 + SIGINT);
  CHECK(sim["b"].verdict->exit_code == 128 + SIGINT);
}

TEST_CASE("who leaves before the first round leaves alone", "[rendezvous][job][leaving]") {
  Sim sim(nodes(3, 3));
  sim.join("a");
  sim.join("b");
  sim.say("b", Leaving{SIGINT});
  CHECK(sim["b"].verdict->exit_code == 128 + SIGINT);
  CHECK(sim["b"].dismissed);
  CHECK_FALSE(sim["a"].verdict);
}

TEST_CASE("the node that hosts the server stays without workers until the job ends",
          "[rendezvous][job][leaving]") {
  Sim sim(nodes(1, 2));
  sim.add("a").hello.hosts_server = true;
  sim.greet("a");
  sim.join("b");
  sim.advance(61s);
  sim.say("a", Leaving{SIGTERM, true});
  sim.say("a", Saving{sim["a"].round(), 0});
  sim.say("b", Saving{sim["b"].round(), 0});
  sim.advance(2s);
  CHECK(sim["b"].assignment().nodes == 1);
  CHECK_FALSE(sim["a"].verdict);
  CHECK(sim.state_of("a") == "leaving");
  SECTION("with the job's verdict") {
    sim.succeed("b");
    CHECK(sim["a"].verdict->exit_code == 0);
    CHECK(sim["a"].dismissed);
  }
  SECTION("a second signal ends the stay") {
    sim.say("a", Leaving{SIGTERM, true});
    CHECK(sim["a"].verdict->exit_code == 75);
    CHECK(sim["a"].dismissed);
  }
}

// --- Preemption. ---

TEST_CASE("before a noticed node leaves, all workers save", "[rendezvous][job][preemption]") {
  Sim sim(nodes(1, 3));
  for (const auto* name : {"a", "b", "c"}) {
    sim.add(name).hello.slots = 2;
    sim.greet(name);
  }
  sim.advance(61s);
  const auto round = sim["a"].round();
  sim.ping("a");
  sim.advance(1s);
  sim.say("b", Notice{"spot instance", 20s});
  for (const auto* name : {"a", "b", "c"}) {
    REQUIRE(sim[name].prepares.size() == 1);
    CHECK(sim[name].stops.empty());
  }
  CHECK(sim["a"].prepares[0].left == 21s);  // From when it sent the quoted ping.
  sim.say("a", Saving{round, 0});
  sim.say("b", Saving{round, 1});
  CHECK(sim.noted("3 of 6 workers still save"));
  SECTION("until all have") {
    sim.say("b", Saving{round, 0});
    sim.say("c", Saving{round, 0});
  }
  SECTION("or the deadline ends") {
    sim.advance(19999ms);
    CHECK(sim["a"].stops.empty());
    sim.advance(1ms);
  }
  CHECK(sim["a"].stops.size() == 1);
  sim.advance(1s);
  CHECK(sim["a"].assignment().nodes == 2);
  CHECK(sim["a"].assignment().restarts == 0);
  CHECK(sim["b"].verdict->exit_code == 75);
  CHECK(sim["b"].verdict->alone);
}

TEST_CASE("a second signal ends the saving", "[rendezvous][job][preemption]") {
  Sim sim(nodes(1, 2));
  running(sim, {"a", "b"});
  sim.say("b", Leaving{SIGTERM, true});
  CHECK(sim["b"].stops.empty());
  sim.say("b", Leaving{SIGTERM, true});
  CHECK(sim["b"].stops.size() == 1);
}

TEST_CASE("a leaving that is said again after a reconnect is no second signal",
          "[rendezvous][job][preemption]") {
  Sim sim(nodes(1, 2));
  running(sim, {"a", "b"});
  sim.say("b", Leaving{SIGTERM, true});
  sim.drop("b");
  sim.greet("b");
  sim.say("b", Leaving{SIGTERM, true});
  CHECK(sim["b"].stops.empty());
  sim.say("b", Leaving{SIGTERM, true});
  CHECK(sim["b"].stops.size() == 1);
}

TEST_CASE("the signal that follows a notice ends no saving, the user's does",
          "[rendezvous][job][preemption]") {
  Sim sim(nodes(1, 2));
  running(sim, {"a", "b"});
  sim.say("b", Notice{"spot instance", 20s});
  const bool noticed = GENERATE(true, false);
  sim.say("b", Leaving{SIGTERM, noticed});
  CHECK(sim["b"].stops.empty() == noticed);
}

TEST_CASE("when all nodes are taken away the job is worth a requeue",
          "[rendezvous][job][preemption]") {
  Sim sim(nodes(2, 2));
  running(sim, {"a", "b"});
  for (const auto* name : {"a", "b"}) sim.say(name, Leaving{SIGTERM, true});
  for (const auto* name : {"a", "b"}) sim.say(name, Saving{sim[name].round(), 0});
  REQUIRE(sim["a"].verdict);
  CHECK(sim["a"].verdict->exit_code == 75);
  CHECK(sim["b"].verdict->exit_code == 75);
}

TEST_CASE("a member that reconnects while all save is told again, with what is left",
          "[rendezvous][job][preemption]") {
  Sim sim(nodes(1, 2));
  running(sim, {"a", "b"});
  sim.say("b", Notice{"spot instance", 20s});
  sim.drop("a");
  sim.advance(5s);
  sim.greet("a");
  REQUIRE(sim["a"].prepares.size() == 2);
  CHECK(sim["a"].prepares[1].left == 15s);
}

TEST_CASE("while all save, who ends for want of a peer is no failure", "[rendezvous][job]") {
  Sim sim(nodes(1, 2, 3));
  running(sim, {"a", "b"});
  sim.say("b", Notice{"spot", 30s});
  sim.fail("a", {.code = 1}, Cause::PeerLoss);  // The other rank saved and left.
  CHECK(sim["a"].stops.empty());
  sim.say("a", Saving{sim["a"].round(), 0});
  sim.say("b", Saving{sim["b"].round(), 0});
  sim.advance(1s);
  CHECK(sim["a"].assignment().nodes == 1);
  CHECK(sim["a"].assignment().restarts == 0);
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

TEST_CASE("an embedded server stays for a node that is cut off at the job's end",
          "[rendezvous][job]") {
  Sim sim(nodes(2, 2));
  sim.add("a").hello.hosts_server = true;
  sim.greet("a");
  sim.join("b");
  sim.succeed("b");
  sim.drop("b");
  sim.freeze("b");
  sim.succeed("a");
  sim.advance(8s);
  CHECK_FALSE(sim["a"].dismissed);
  SECTION("which comes back") {
    sim.greet("b");
    CHECK(sim["b"].verdict);
  }
  SECTION("which does not") { sim.advance(8s); }
  CHECK(sim["a"].dismissed);
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

TEST_CASE("a server that goes for good ends its jobs, and says that another try is worth it",
          "[rendezvous][job]") {
  Sim sim(nodes(1, 2));
  running(sim, {"a", "b"});
  sim.farewell("a", "left");
  sim.feed(Rendezvous::Ending{"its launcher ends"});
  REQUIRE(sim["b"].verdict);
  CHECK(sim["b"].verdict->exit_code == 75);
  CHECK(sim["b"].verdict->summary ==
        "the node that hosts the rendezvous leaves: its launcher ends");
  CHECK(sim["b"].dismissed);
  CHECK(sim.view().phase == "failed");
}

TEST_CASE("a drained node's workers have the time that the job says", "[rendezvous][job]") {
  auto settings = nodes(1, 2);
  settings.preempt_deadline = 3s;
  Sim sim(settings);
  running(sim, {"a", "b"});
  REQUIRE(sim.command(DrainNode{"b", {}}));
  CHECK(sim["a"].prepares.at(0).left <= 5s);  // From the last ping on.
  sim.advance(3s);
  CHECK(sim["b"].stops.size() == 1);
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

// --- Commands. ---

TEST_CASE("a drained node leaves, free of charge, and is not taken again",
          "[rendezvous][job][command]") {
  Sim sim(nodes(1, 3));
  running(sim, {"a", "b", "c"});
  const auto called = GENERATE(as<std::string>(), "b", "10.0.0.2", "1", "machine-b");
  REQUIRE(sim.command(DrainNode{called, sim["a"].round()}));
  CHECK(sim["a"].prepares.size() == 1);
  CHECK(sim["b"].hello.held.kept.drained);
  CHECK_FALSE(sim["a"].hello.held.kept.drained);
  for (const auto* name : {"a", "b", "c"}) sim.say(name, Saving{sim[name].round(), 0});
  const auto again = sim.command(DrainNode{sim["b"].hello.incarnation.value, {}});
  REQUIRE(again);
  CHECK(again->find("leaves already") != std::string::npos);
  sim.advance(1s);
  CHECK(sim["a"].assignment().nodes == 2);
  CHECK(sim["a"].assignment().restarts == 0);
  CHECK(sim["b"].verdict->exit_code == 75);
}

TEST_CASE("a name that is several nodes' drains none", "[rendezvous][job][command]") {
  Sim sim(nodes(2, 2));
  for (const auto* name : {"a", "b"}) {
    sim.add(name).hello.machine = "same";
    sim.greet(name);
  }
  const auto outcome = sim.command(DrainNode{"same", {}});
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::InvalidArgument);
  CHECK(outcome.error().message.find("a (10.0.0.1") != std::string::npos);
  CHECK(outcome.error().message.find("b (10.0.0.2") != std::string::npos);
  CHECK(sim.command(DrainNode{"nobody", {}}).error().code == Errc::NotFound);
  CHECK(sim["a"].stops.empty());
}

TEST_CASE("a restart is free, and done once for one round", "[rendezvous][job][command]") {
  Sim sim(nodes(2, 2));
  running(sim, {"a", "b"});
  const auto round = sim["a"].round();
  REQUIRE(sim.command(RestartJob{round}));
  CHECK(sim["a"].assignments.size() == 2);
  CHECK(sim["a"].assignment().restarts == 0);
  const auto again = sim.command(RestartJob{round});
  REQUIRE_FALSE(again);
  CHECK(again.error().code == Errc::Stale);
  CHECK(sim.command(StopJob{round}).error().code == Errc::Stale);
  CHECK(sim.command(SetSizes{1, 1, round}).error().code == Errc::Stale);
  CHECK(sim["a"].assignments.size() == 2);
}

TEST_CASE("a stopped job ends everywhere", "[rendezvous][job][command]") {
  Sim sim(nodes(2, 2, 5));
  running(sim, {"a", "b"});
  sim["b"].slow = true;
  REQUIRE(sim.command(StopJob{}));
  REQUIRE(sim.command(StopJob{}));
  sim.fail("b", {.signal = SIGTERM});
  sim.empty("b");
  REQUIRE(sim["a"].verdict);
  CHECK(sim["a"].verdict->exit_code == 128 + SIGTERM);
  CHECK(sim["a"].verdict->summary == "an operator stopped the job");
  CHECK_FALSE(sim["a"].verdict->cause);
  REQUIRE(sim.command(StopJob{}));
}

TEST_CASE("sizes can be set by hand", "[rendezvous][job][command]") {
  Sim sim(nodes(2, 2));
  running(sim, {"a", "b", "c"});
  CHECK(sim["c"].assignments.empty());
  SECTION("larger: spares are taken in") {
    REQUIRE(sim.command(SetSizes{2, 3}));
    sim.advance(500ms);
    CHECK(sim["c"].assignment().nodes == 3);
    CHECK(sim["c"].hello.held.kept.sizes == std::pair{2U, 3U});
  }
  SECTION("smaller: the round is stopped") {
    REQUIRE(sim.command(SetSizes{1, 1}));
    CHECK(sim["a"].assignments.size() + sim["b"].assignments.size() == 3);
  }
  SECTION("nonsense is refused") {
    const auto outcome = sim.command(SetSizes{3, 2});
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::InvalidArgument);
  }
}

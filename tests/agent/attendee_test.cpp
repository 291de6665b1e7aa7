#include "agent/core/attendee.hpp"

#include <csignal>
#include <map>
#include <set>

#include <catch2/catch.hpp>

using namespace muster;
using namespace std::chrono_literals;
using agent::Attendee;
using Line = Attendee::Line;

namespace {

constexpr Duration kLease = 10s;

/// An attendee with a lease of 10 s, and a server that answers only when the test says so. Lines
/// are dialled and connected by hand or, with `reachable`, at once.
class AttendeeSim {
 public:
  AttendeeSim()
      : attendee({.hello = {.job = "j",
                            .incarnation = {"me"},
                            .settings = {.lease = kLease, .join_timeout = 60s}},
                  .server = "head:29400",
                  .seed = 1}) {
    perform(attendee.start(now));
  }

  void feed(const Attendee::Event& event) { perform(attendee.step(now, event)); }
  void hear(ServerMessage message) { hear_on(voice, std::move(message)); }
  void hear_on(Line line, ServerMessage message) {
    Attendee::Received received;
    received.line = line;
    received.message = std::move(message);
    feed(std::move(received));
  }
  void report(Report report) { feed(Attendee::Reported{std::move(report)}); }
  void connect(Line line) { feed(Attendee::Connected{line}); }
  void drop(Line line, std::string why = "reset") { feed(Attendee::Dropped{line, std::move(why)}); }
  void advance(Duration by) {
    const auto until = now + by;
    while (attendee.next_deadline() && *attendee.next_deadline() <= until) {
      now = std::max(now, *attendee.next_deadline());
      feed(Attendee::Ticked{});
    }
    now = until;
  }
  /// Answers the newest ping and lets time pass, again and again.
  void advance_answered(Duration by) {
    for (const auto until = now + by; now < until;) {
      hear(Pong{newest_ping});
      advance(std::min<Duration>(until - now, 1s));
    }
    hear(Pong{newest_ping});
  }

  /// Connects, is welcomed, and its Hello is answered.
  void join() {
    connect(dialled.back());
    hear(Welcome{"1"});
    hear(Pong{newest_ping});
  }
  Assignment assignment(std::uint64_t number) const {
    Assignment given;
    given.round = {1, number};
    given.attempt = static_cast<std::uint32_t>(number) - 1;
    given.restarts = 2;
    given.nodes = 3;
    return given;
  }
  void order(Order order) { order_quoting(newest_ping, std::nullopt, std::move(order)); }
  void order_quoting(std::uint64_t ping, std::optional<Duration> right, Order order) {
    order_on(voice, ping, right, std::move(order));
  }
  // Step by step: g++ 12 takes variants of variants that are built in one expression for
  // uninitialised.
  void order_on(Line line, std::uint64_t ping, std::optional<Duration> right, Order order) {
    Directive directive;
    directive.ping = ping;
    directive.right = right;
    directive.order = std::move(order);
    hear_on(line, std::move(directive));
  }

  Attendee attendee;
  TimePoint now{};
  Line voice;
  std::uint64_t newest_ping = 0;
  std::vector<Line> dialled;
  std::vector<Line> hung_up;
  std::vector<Hello> hellos;
  std::vector<TimePoint> pings;
  std::vector<Report> reports;  // Since the newest Hello, and on its line.
  std::vector<AgentMessage> sent;
  std::optional<TimePoint> lease_ends;
  int half_leases = 0;
  std::vector<std::string> fences;
  std::vector<Order> orders;
  std::vector<std::string> said;
  std::optional<Attendee::Leave> left;

 private:
  void perform(const std::vector<Attendee::Action>& actions) {
    for (const auto& action : actions) std::visit([this](const auto& what) { act(what); }, action);
  }
  void act(const Attendee::Dial& dial) { dialled.push_back(dial.line); }
  void act(const Attendee::HangUp& hang_up) { hung_up.push_back(hang_up.line); }
  void act(const Attendee::Transmit& transmit) {
    sent.push_back(transmit.message);
    if (const auto* ping = std::get_if<Ping>(&transmit.message)) {
      CHECK(ping->number == ++newest_ping);
      pings.push_back(now);
      return;
    }
    const auto& report = std::get<Report>(transmit.message);
    if (const auto* hello = std::get_if<Hello>(&report)) {
      CHECK(hello->ping == ++newest_ping);
      voice = transmit.line;
      hellos.push_back(*hello);
      reports.clear();
    } else {
      reports.push_back(report);
    }
    CHECK(transmit.line == voice);
  }
  void act(const Attendee::Renew& renew) { lease_ends = renew.ends; }
  void act(const Attendee::HalfLease&) { ++half_leases; }
  void act(const Attendee::Fence& fence) { fences.push_back(fence.reason); }
  void act(const Attendee::Deliver& deliver) { orders.push_back(deliver.order); }
  void act(const Attendee::Say& say) { said.push_back(say.text); }
  void act(const Attendee::Leave& leave) { left = leave; }
};

template <class T>
std::size_t count(const std::vector<Report>& reports) {
  return static_cast<std::size_t>(
      std::count_if(reports.begin(), reports.end(),
                    [](const Report& report) { return std::holds_alternative<T>(report); }));
}

}  // namespace

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

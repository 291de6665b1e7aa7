#include "agent/run/remote_attendance.hpp"

#include "base/posix/boot_clock.hpp"
#include "base/posix/fork.hpp"
#include "base/posix/process.hpp"
#include "fake_rendezvous.hpp"

#include <sstream>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <spdlog/sinks/ostream_sink.h>

using namespace muster;
using namespace std::chrono_literals;

namespace {

constexpr auto kPatience = 20s;  // For what must happen, on the slowest machine.

/// An attendance, the server that it attends, and all that either says.
struct Fixture {
  explicit Fixture(Duration lease = 10s) {
    server.emplace(loop);
    server->on_report = [this](const Report& report) { reports.push_back(report); };
    agent::RemoteAttendance::Settings settings;
    settings.server = server->endpoint();
    settings.secret = "the secret";
    settings.hello.job = "job-1";
    settings.hello.incarnation = {"of the secret"};
    settings.hello.settings.lease = lease;
    settings.hello.settings.max_nodes = 2;
    settings.seed = 7;
    attendance =
        agent::RemoteAttendance::create(loop, std::move(settings), keeper, *logger).value();
    attendance->attend({.on_order =
                            [this](const Order& order) {
                              lease_at_order = keeper.page.lease_ends();
                              orders.push_back(order);
                            },
                        .on_fence =
                            [this](const std::string& reason) {
                              lease_at_fence = keeper.page.lease_ends();
                              fences.push_back(reason);
                            },
                        .on_half_lease = [this] { ++half_leases; },
                        .on_giving_up =
                            [this](int code, const std::string& message) {
                              exit_code = code;
                              why = message;
                            }});
  }

  void say_hello() {
    Hello hello;
    hello.slots = 2;
    hello.role = "trainer";
    hello.store = {"0.0.0.0", 4711};
    hello.addresses = {"192.0.2.7"};
    attendance->report(hello);
  }

  template <class Kind>
  const Kind* said() const {
    for (const auto& report : reports) {
      if (const auto* found = std::get_if<Kind>(&report)) return found;
    }
    return nullptr;
  }

  template <class Condition>
  bool run_until(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!condition() && std::chrono::steady_clock::now() < deadline) loop.run_one_for(100ms);
    return condition();
  }

  /// The server has heard of us and answered.
  void come_in() {
    say_hello();
    REQUIRE(run_until([this] { return keeper.page.lease_ends().has_value(); }));
  }

  RoundId assign() {
    Assignment assignment;
    assignment.round = {5, ++number};
    assignment.nodes = 2;
    server->order(assignment);
    REQUIRE(run_until([this] { return !orders.empty(); }));
    return assignment.round;
  }

  std::optional<agent::FarewellNote> note() const {
    return agent::decode_farewell_note(keeper.farewell.read());
  }

  boost::asio::io_context loop{1};
  agent::KeeperLink keeper{posix::open_pidfd(posix::own_pid()).value(),
                           posix::LeasePage::create().value(), posix::current_signal_settings(),
                           posix::SharedNote::create().value(),
                           posix::SharedNote::create().value()};
  std::shared_ptr<Logger> logger = make_stderr_logger(spdlog::level::off);
  std::optional<agent::FakeRendezvous> server;
  std::unique_ptr<agent::RemoteAttendance> attendance;

  std::uint64_t number = 0;
  std::vector<Report> reports;
  std::vector<Order> orders;
  std::optional<TimePoint> lease_at_order;
  std::vector<std::string> fences;
  std::optional<TimePoint> lease_at_fence;
  int half_leases = 0;
  std::optional<int> exit_code;
  std::string why;
};

}  // namespace

TEST_CASE(
    "the Hello holds what launcher and agent know, and our end of the connection for the store",
    "[agent][attendance]") {
  Fixture fixture;
  CHECK(fixture.attendance->is_leased());
  fixture.say_hello();
  REQUIRE(fixture.run_until([&] { return fixture.said<Hello>() != nullptr; }));
  const auto& hello = *fixture.said<Hello>();
  CHECK(hello.job == "job-1");
  CHECK(hello.incarnation.value == "of the secret");
  CHECK(hello.slots == 2);
  CHECK(hello.role == "trainer");
  CHECK(hello.store == Endpoint{"127.0.0.1", 4711});
  CHECK(hello.addresses == std::vector<std::string>{"192.0.2.7"});
  CHECK(fixture.attendance->local_address() == "127.0.0.1");
}

TEST_CASE("the keeper knows how to say farewell before the first Hello is heard",
          "[agent][attendance]") {
  Fixture fixture;
  CHECK_FALSE(fixture.note());
  std::optional<agent::FarewellNote> at_hello;
  fixture.server->on_report = [&](const Report&) { at_hello = fixture.note(); };
  fixture.say_hello();
  REQUIRE(fixture.run_until([&] { return at_hello.has_value(); }));
  CHECK(at_hello->server == fixture.server->endpoint());
  CHECK(at_hello->farewell.job == "job-1");
  CHECK(at_hello->farewell.secret == "the secret");
  CHECK_FALSE(at_hello->farewell.round);
}

TEST_CASE("the lease is on the page, and the round in the note, when the Assignment is delivered",
          "[agent][attendance]") {
  Fixture fixture;
  const auto before = posix::boot_now();
  fixture.come_in();
  const auto round = fixture.assign();
  REQUIRE(fixture.lease_at_order);
  CHECK(*fixture.lease_at_order > before + 10s);
  CHECK(*fixture.lease_at_order <= posix::boot_now() + 10s);
  CHECK(std::get<Assignment>(fixture.orders[0]).round == round);
  CHECK(fixture.note()->farewell.round == round);
}

TEST_CASE("pings that are answered renew the lease on the page", "[agent][attendance]") {
  Fixture fixture(1s);
  fixture.come_in();
  const auto first = *fixture.keeper.page.lease_ends();
  CHECK(fixture.run_until([&] { return *fixture.keeper.page.lease_ends() >= first + 400ms; }));
}

TEST_CASE("a server that answers no more: half the lease is told, then the workers are fenced",
          "[agent][attendance]") {
  Fixture fixture(1s);
  fixture.come_in();
  const auto round = fixture.assign();
  fixture.server->answers_pings = false;
  REQUIRE(fixture.run_until([&] { return fixture.half_leases == 1; }));
  CHECK(fixture.fences.empty());
  const auto ends = *fixture.keeper.page.lease_ends();
  REQUIRE(fixture.run_until([&] { return fixture.fences.size() == 1; }));
  CHECK(posix::boot_now() >= ends);
  CHECK(fixture.lease_at_fence <= posix::boot_now());  // The keeper kills with us.

  // Once nothing is left it comes back, and may run again.
  fixture.server->answers_pings = true;
  fixture.reports.clear();
  fixture.attendance->report(Empty{round, {}, {"0.0.0.0", 4712}});
  REQUIRE(fixture.run_until([&] { return fixture.said<Hello>() != nullptr; }));
  CHECK(fixture.said<Hello>()->held.round == round);
  CHECK(fixture.said<Hello>()->held.empty);
  CHECK(fixture.said<Hello>()->store == Endpoint{"127.0.0.1", 4712});
  CHECK(fixture.run_until(
      [&] { return fixture.keeper.page.lease_ends() > posix::boot_now() + 100ms; }));
}

TEST_CASE("ranks that were given away fence at once, whatever the lease says",
          "[agent][attendance]") {
  Fixture fixture;
  fixture.come_in();
  fixture.assign();
  fixture.server->say(Pong{fixture.server->newest_ping, true});
  REQUIRE(fixture.run_until([&] { return fixture.fences.size() == 1; }));
  CHECK(*fixture.lease_at_fence <= posix::boot_now());
}

TEST_CASE("a connection that is reset is dialled again at once, and nobody is fenced",
          "[agent][attendance]") {
  Fixture fixture;
  fixture.come_in();
  const auto round = fixture.assign();
  fixture.reports.clear();
  fixture.server->hang_up();
  REQUIRE(fixture.run_until([&] { return fixture.said<Hello>() != nullptr; }));
  CHECK(fixture.said<Hello>()->held.round == round);
  CHECK_FALSE(fixture.said<Hello>()->held.empty);
  CHECK(fixture.fences.empty());
}

TEST_CASE("what a server says can do a terminal no harm", "[agent][attendance]") {
  std::ostringstream log;
  Fixture fixture;
  fixture.logger->set_level(spdlog::level::info);
  fixture.logger->sinks() = {std::make_shared<spdlog::sinks::ostream_sink_mt>(log)};
  fixture.come_in();
  fixture.server->say(Waiting{"for \x1b[2Jothers"});
  REQUIRE(fixture.run_until([&] { return log.str().find("others") != std::string::npos; }));
  CHECK(log.str().find("for \\x1b[2Jothers") != std::string::npos);
  CHECK(log.str().find('\x1b') == std::string::npos);
}

TEST_CASE("a verdict is passed on when the server dismisses, and no farewell is due then",
          "[agent][attendance]") {
  Fixture fixture;
  fixture.come_in();
  Verdict verdict;
  verdict.exit_code = 3;
  fixture.server->order(verdict);
  REQUIRE(fixture.run_until([&] { return fixture.said<VerdictSeen>() != nullptr; }));
  CHECK(fixture.orders.empty());
  CHECK(fixture.note());
  fixture.server->say(Dismissal{});
  REQUIRE(fixture.run_until([&] { return !fixture.orders.empty(); }));
  CHECK(std::get<Verdict>(fixture.orders[0]).exit_code == 3);
  CHECK_FALSE(fixture.note());
}

TEST_CASE("a node that the user ended leaves with the signal's code, and has its farewell said",
          "[agent][attendance]") {
  Fixture fixture;
  fixture.come_in();
  fixture.attendance->report(Leaving{15, false});
  REQUIRE(fixture.run_until([&] { return fixture.said<Leaving>() != nullptr; }));
  fixture.server->say(Dismissal{});
  REQUIRE(fixture.run_until([&] { return fixture.exit_code.has_value(); }));
  CHECK(fixture.exit_code == 143);
  REQUIRE(fixture.note());
  CHECK(fixture.note()->farewell.reason == "its launcher was told to end");
}

TEST_CASE("a refusal ends it with the server's words and code; nobody awaits a farewell",
          "[agent][attendance]") {
  Fixture fixture;
  fixture.server->on_report = [&](const Report&) {};
  fixture.say_hello();
  REQUIRE(fixture.run_until([&] { return fixture.server->greetings == 1; }));
  fixture.server->say(Refusal{"node rank 1 is taken", 2});
  REQUIRE(fixture.run_until([&] { return fixture.exit_code.has_value(); }));
  CHECK(fixture.exit_code == 2);
  CHECK(fixture.why == "node rank 1 is taken");
}

TEST_CASE("without a server the node gives up after the time to join, worth a requeue",
          "[agent][attendance]") {
  boost::asio::io_context loop{1};
  const auto bound = posix::bind_tcp({"127.0.0.1", 0}).value();  // Not listening.
  const agent::KeeperLink keeper{
      posix::open_pidfd(posix::own_pid()).value(), posix::LeasePage::create().value(),
      posix::current_signal_settings(), posix::SharedNote::create().value(),
      posix::SharedNote::create().value()};
  const auto logger = make_stderr_logger(spdlog::level::off);
  agent::RemoteAttendance::Settings settings;
  settings.server = posix::to_endpoint(posix::local_address(bound.get()));
  settings.secret = "the secret";
  settings.hello.settings.join_timeout = 300ms;
  auto attendance =
      agent::RemoteAttendance::create(loop, std::move(settings), keeper, *logger).value();
  std::optional<int> exit_code;
  std::string why;
  attendance->attend({.on_order = {},
                      .on_fence = {},
                      .on_half_lease = {},
                      .on_giving_up = [&](int code, const std::string& message) {
                        exit_code = code;
                        why = message;
                        loop.stop();
                      }});
  attendance->report(Hello{});
  loop.run_for(kPatience);
  CHECK(exit_code == 75);
  CHECK(why.find("onnection refused") != std::string::npos);
  CHECK_FALSE(agent::decode_farewell_note(keeper.farewell.read()));  // Nobody ever knew of us.
}

TEST_CASE("before a connection stands there is no note: the keeper would look the name up",
          "[agent][attendance]") {
  boost::asio::io_context loop{1};
  const auto silent = posix::take_port({"127.0.0.1", 0}, posix::Hold::Listening).value();
  const agent::KeeperLink keeper{
      posix::open_pidfd(posix::own_pid()).value(), posix::LeasePage::create().value(),
      posix::current_signal_settings(), posix::SharedNote::create().value(),
      posix::SharedNote::create().value()};
  const auto logger = make_stderr_logger(spdlog::level::off);
  agent::RemoteAttendance::Settings settings;
  settings.server = {"localhost", posix::to_endpoint(posix::local_address(silent.get())).port};
  settings.secret = "the secret";
  settings.hello.settings.join_timeout = 20s;
  auto attendance =
      agent::RemoteAttendance::create(loop, std::move(settings), keeper, *logger).value();
  attendance->report(Hello{});
  bool has_dialled = false;
  boost::asio::posix::stream_descriptor connected(loop, posix::duplicate(silent.get())->release());
  connected.async_wait(connected.wait_read,
                       [&](const boost::system::error_code&) { has_dialled = true; });
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!has_dialled && std::chrono::steady_clock::now() < deadline) loop.run_one_for(100ms);
  REQUIRE(has_dialled);
  CHECK(keeper.farewell.read().empty());
}

TEST_CASE("the host of the rendezvous leaves no note: its server dies with it",
          "[agent][attendance]") {
  boost::asio::io_context loop{1};
  agent::FakeRendezvous server(loop);
  const agent::KeeperLink keeper{
      posix::open_pidfd(posix::own_pid()).value(), posix::LeasePage::create().value(),
      posix::current_signal_settings(), posix::SharedNote::create().value(),
      posix::SharedNote::create().value()};
  const auto logger = make_stderr_logger(spdlog::level::off);
  agent::RemoteAttendance::Settings settings;
  settings.server = server.endpoint();
  settings.secret = "the secret";
  settings.hello.job = "job-1";
  settings.hello.incarnation = {"of the secret"};
  settings.hello.hosts_server = true;
  auto attendance =
      agent::RemoteAttendance::create(loop, std::move(settings), keeper, *logger).value();
  Hello hello;
  hello.store = {"0.0.0.0", 4711};
  attendance->report(hello);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (server.greetings == 0 && std::chrono::steady_clock::now() < deadline)
    loop.run_one_for(100ms);
  CHECK(server.greetings == 1);
  CHECK(keeper.farewell.read().empty());
}

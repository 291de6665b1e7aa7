// Meeting points on this machine's loopback, with real servers and connections.

#include "launcher/meeting_point.hpp"

#include "base/posix/fork.hpp"
#include "base/posix/process.hpp"
#include "base/posix/socket.hpp"
#include "rendezvous/client/secret.hpp"
#include "tests/launcher/temporary_folder.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

namespace muster::launcher {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kPatience = 30s;

/// A loop that several nodes share, as if each were a process of its own.
class World {
 public:
  boost::asio::io_context loop{1};
  TemporaryFolder folder;
  std::shared_ptr<Logger> logger = make_stderr_logger(spdlog::level::off);

  template <class Condition>
  bool run_until(Condition holds, Duration patience = kPatience) {
    const auto end = steady_clock::now() + patience;
    while (!holds() && steady_clock::now() < end) {
      loop.restart();
      loop.run_one_for(10ms);
    }
    return holds();
  }

  /// One that nobody has, for a moment.
  std::uint16_t free_port() const {
    const auto socket = posix::bind_tcp({"127.0.0.1", 0});
    REQUIRE(socket);
    return posix::to_endpoint(posix::local_address(socket->get())).port;
  }
};

class Node {
 public:
  struct Facts {
    std::optional<NodeRank> rank{};
    std::optional<bool> is_host{};
    std::uint32_t nodes = 2;
    Duration join_timeout = 60s;
    std::string host = "127.0.0.1";
  };

  Node(World& world, std::uint16_t port, Facts facts) {
    const std::string secret = rendezvous::random_secret().value();
    MeetingPoint::Settings settings;
    settings.meeting = {
        .server = {facts.host, port}, .origin = "--rdzv-endpoint", .is_host = facts.is_host};
    settings.attendance.secret = secret;
    auto& hello = settings.attendance.hello;
    hello.job = "job";
    hello.incarnation = rendezvous::incarnation_of(secret);
    hello.machine = "machine";
    hello.node_rank = facts.rank;
    hello.settings.min_nodes = hello.settings.max_nodes = facts.nodes;
    hello.settings.lease = 2s;
    hello.settings.join_timeout = facts.join_timeout;
    settings.server.job = "job";
    settings.server.lease = 2s;
    settings.server.control_token = "token";
    settings.server.marker = world.folder.path() / "marker";
    settings.server.runtime_folder = world.folder.path() / "runtime";
    point = std::make_unique<MeetingPoint>(world.loop, std::move(settings), keeper, *world.logger);
    point->attend({.on_order = [this](const Order& order) { orders.push_back(order); },
                   .on_fence = {},
                   .on_half_lease = {},
                   .on_giving_up =
                       [this](int code, const std::string& why) {
                         exit_code = code;
                         message = why;
                       }});
    Hello hello_of_agent;
    hello_of_agent.slots = 2;
    hello_of_agent.role = "default";
    hello_of_agent.store = {"127.0.0.1", 1};
    point->report(hello_of_agent);
  }

  [[nodiscard]] std::optional<Assignment> part() const {
    for (const auto& order : orders) {
      if (const auto* assignment = std::get_if<Assignment>(&order)) return *assignment;
    }
    return std::nullopt;
  }

  agent::KeeperLink keeper{posix::open_pidfd(posix::own_pid()).value(),
                           posix::LeasePage::create().value(), posix::current_signal_settings(),
                           posix::SharedNote::create().value(),
                           posix::SharedNote::create().value()};
  std::unique_ptr<MeetingPoint> point;
  std::vector<Order> orders;
  std::optional<int> exit_code;
  std::string message;
};

}  // namespace

TEST_CASE("the first agent at an address of its machine hosts, the second joins it",
          "[launcher][meeting]") {
  World world;
  const auto port = world.free_port();
  Node first(world, port, {});
  REQUIRE(world.run_until([&] { return first.point->hosts_rendezvous(); }));
  Node second(world, port, {});
  REQUIRE(world.run_until([&] { return first.part() && second.part(); }));
  CHECK_FALSE(second.point->hosts_rendezvous());
  CHECK(first.part()->world_size == 4);
  CHECK(first.part()->local_world_size == 4);  // They know that they share the machine.
  CHECK(first.point->node_rank() == first.part()->node_rank);
  CHECK(first.part()->node_rank != second.part()->node_rank);
}

TEST_CASE("a node of another rank lets the first one host", "[launcher][meeting]") {
  World world;
  const auto port = world.free_port();
  Node second(world, port, {.rank = NodeRank{1}});
  CHECK_FALSE(world.run_until([&] { return second.point->hosts_rendezvous(); }, 500ms));
  Node first(world, port, {.rank = NodeRank{0}});
  REQUIRE(world.run_until([&] { return first.part() && second.part(); }));
  CHECK(first.point->hosts_rendezvous());
  CHECK_FALSE(second.point->hosts_rendezvous());
  CHECK(second.part()->node_rank == NodeRank{1});
}

TEST_CASE("a node of another rank hosts when nobody else does", "[launcher][meeting]") {
  World world;
  const auto began = steady_clock::now();
  Node node(world, world.free_port(), {.rank = NodeRank{1}});
  REQUIRE(world.run_until([&] { return node.point->hosts_rendezvous(); }));
  CHECK(steady_clock::now() - began >= kSilenceBeforeHosting);
}

TEST_CASE("a node that must not host waits for one that does, and says for what it waited",
          "[launcher][meeting]") {
  World world;
  const auto port = world.free_port();
  Node node(world, port, {.is_host = false, .join_timeout = 700ms});
  REQUIRE(world.run_until([&] { return node.exit_code.has_value(); }));
  CHECK(node.exit_code == 75);
  CHECK(node.message.find("127.0.0.1:" + std::to_string(port)) != std::string::npos);
}

TEST_CASE("a silent stranger on this machine's own port is named, not waited for beyond the time",
          "[launcher][meeting]") {
  World world;
  auto stranger = posix::bind_tcp({"127.0.0.1", 0});
  REQUIRE(stranger);
  REQUIRE(posix::listen_on(stranger->get()));
  const auto port = posix::to_endpoint(posix::local_address(stranger->get())).port;
  Node node(world, port, {.join_timeout = 3s});
  REQUIRE(world.run_until([&] { return node.exit_code.has_value(); }));
  CHECK(node.exit_code == 75);
  INFO(node.message);
  CHECK(node.message.starts_with("--rdzv-endpoint"));
  CHECK(node.message.find("says nothing") != std::string::npos);
}

TEST_CASE("a name that is unknown is looked up again until the time is over",
          "[launcher][meeting]") {
  World world;
  Node node(world, 29400, {.join_timeout = 500ms, .host = "no-such-host.invalid"});
  REQUIRE(world.run_until([&] { return node.exit_code.has_value(); }, 60s));
  CHECK(node.exit_code == 75);
  CHECK(node.message.find("no-such-host.invalid") != std::string::npos);
}

TEST_CASE("a lone node hosts without a lease", "[launcher][meeting]") {
  World world;
  Node node(world, world.free_port(), {.nodes = 1});
  REQUIRE(world.run_until([&] { return node.part().has_value(); }));
  CHECK(node.point->hosts_rendezvous());
  CHECK(node.part()->nodes == 1);
  // A year, or for ever: far beyond the lease of 2 s.
  CHECK(node.keeper.page.ends().load() > (posix::boot_now() + 1h).time_since_epoch().count());
}

TEST_CASE("whoever leaves before it has met anybody leaves at once", "[launcher][meeting]") {
  World world;
  Node node(world, world.free_port(), {.is_host = false});
  world.run_until([] { return false; }, 50ms);
  node.point->report(Leaving{.signal = 15});
  REQUIRE(world.run_until([&] { return node.exit_code.has_value(); }, 10s));
  CHECK(node.exit_code == 128 + 15);
}

TEST_CASE("a marker tells whether a server was here before", "[launcher][meeting]") {
  World world;
  const auto port = world.free_port();
  {
    Node first(world, port, {});
    REQUIRE(world.run_until([&] { return first.point->hosts_rendezvous(); }));
    CHECK(std::filesystem::exists(world.folder.path() / "marker"));
  }
  // Its job did not end, so somebody may hold a round of it.
  CHECK(std::filesystem::exists(world.folder.path() / "marker"));
  // The next one recovers first: 1.25 leases.
  const auto began = steady_clock::now();
  Node again(world, port, {});
  Node other(world, port, {});
  REQUIRE(world.run_until([&] { return again.part() && other.part(); }));
  CHECK(steady_clock::now() - began >= 2500ms);
}

}  // namespace muster::launcher

#include "agent/run/knocker.hpp"

#include "base/posix/socket.hpp"
#include "rendezvous/store/server.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

using namespace muster;
using namespace std::chrono_literals;

namespace {

constexpr auto kPatience = 20s;

struct Fixture {
  boost::asio::io_context loop{1};
  std::shared_ptr<Logger> logger = make_stderr_logger(spdlog::level::off);
  bool heard = false;
  std::vector<std::string> failures;

  std::unique_ptr<store::Server> host(posix::Fd bound, const std::string& secret) {
    store::ServerOptions options;
    options.door = {.is_open = false, .allowed = {}, .admitted = {}, .secret = secret};
    return store::Server::start(loop.get_executor(), std::move(bound), std::move(options), *logger)
        .value();
  }
  agent::Knocker::Handlers handlers() {
    return {.on_heard = [this] { heard = true; },
            .on_failed = [this](const std::string& detail) { failures.push_back(detail); }};
  }
  template <class Condition>
  bool run_until(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!condition() && std::chrono::steady_clock::now() < deadline) loop.run_one_for(100ms);
    return condition();
  }
};

}  // namespace

TEST_CASE("a knock is heard once the store listens; until then each failure names both ends",
          "[agent][knock]") {
  Fixture fixture;
  auto bound = posix::bind_tcp({"127.0.0.1", 0}).value();
  const auto endpoint = posix::to_endpoint(posix::local_address(bound.get()));
  const agent::Knocker knocker(fixture.loop, endpoint, "the round's secret", "10.0.0.2",
                               fixture.handlers());
  REQUIRE(fixture.run_until([&] { return fixture.failures.size() >= 3; }));
  CHECK(fixture.failures[0] == "knock from 10.0.0.2 at the store of the master " +
                                   to_string(endpoint) + ": Connection refused");
  CHECK_FALSE(fixture.heard);
  const auto server = fixture.host(std::move(bound), "the round's secret");
  CHECK(fixture.run_until([&] { return fixture.heard; }));
}

TEST_CASE("the store of another round does not welcome; that of ours does", "[agent][knock]") {
  Fixture fixture;
  auto bound = posix::bind_tcp({"127.0.0.1", 0}).value();
  const auto endpoint = posix::to_endpoint(posix::local_address(bound.get()));
  auto server = fixture.host(std::move(bound), "of the round before");
  const agent::Knocker knocker(fixture.loop, endpoint, "the round's secret", "",
                               fixture.handlers());
  REQUIRE(fixture.run_until([&] { return fixture.failures.size() >= 2; }));
  CHECK(fixture.failures[0].ends_with("it is the store of another round"));
  server.reset();
  server = fixture.host(posix::bind_tcp(endpoint).value(), "the round's secret");
  CHECK(fixture.run_until([&] { return fixture.heard; }));
}

TEST_CASE("a master that is named by name is not looked up", "[agent][knock]") {
  Fixture fixture;
  const agent::Knocker knocker(fixture.loop, {"localhost", 29500}, "secret", "",
                               fixture.handlers());
  REQUIRE(fixture.run_until([&] { return fixture.failures.size() >= 2; }));
  CHECK(fixture.failures[0].ends_with("localhost:29500: that is no numeric address"));
}

TEST_CASE("who swallows a knock is tried again, and a knocker that is gone says nothing",
          "[agent][knock]") {
  Fixture fixture;
  const auto silent = posix::bind_tcp({"127.0.0.1", 0}).value();
  REQUIRE(posix::listen_on(silent.get()));  // The kernel answers, nobody else.
  {
    const agent::Knocker knocker(fixture.loop,
                                 posix::to_endpoint(posix::local_address(silent.get())), "secret",
                                 "", fixture.handlers());
    REQUIRE(fixture.run_until([&] { return !fixture.failures.empty(); }));
    CHECK(fixture.failures[0].ends_with("timed out"));
  }
  const auto said = fixture.failures.size();
  fixture.loop.run_for(300ms);
  CHECK(fixture.failures.size() == said);
  CHECK_FALSE(fixture.heard);
}

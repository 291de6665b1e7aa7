#include "agent/run/file_timer.hpp"

#include "agent/run/timer_request.hpp"
#include "tests/launcher/temporary_folder.hpp"

#include <fstream>
#include <sstream>

#include <catch2/catch.hpp>
#include <spdlog/sinks/ostream_sink.h>

using namespace muster;
using namespace std::chrono_literals;
using agent::parse_timer_request;
using agent::WallTime;

TEST_CASE("a request to the file timer is read as PyTorch writes it", "[agent][timer]") {
  const auto set = parse_timer_request(
      R"({"version": 1, "pid": 77, "scope_id": "train.py#12", "expiration_time": 1700000000.25, "signal": 15})");
  REQUIRE(set);
  CHECK(set->pid == 77);
  CHECK(set->scope == "train.py#12");
  CHECK(set->expires == WallTime(1'700'000'000'250'000us));
  CHECK(set->signal == 15);
  const auto released = parse_timer_request(
      R"({"version": 1, "pid": 77, "scope_id": "", "expiration_time": -1, "signal": 9})");
  REQUIRE(released);
  CHECK(!released->expires);
  const auto defaults =
      parse_timer_request(R"({"version":1,"pid":77,"scope_id":"x","expiration_time":5})");
  CHECK(defaults.value().signal == 9);
  const auto only_told = parse_timer_request(
      R"({"version":1,"pid":7,"scope_id":"x","expiration_time":5,"signal":-3})");
  CHECK(only_told.value().signal == 0);
  const auto never =
      parse_timer_request(R"({"version":1,"pid":7,"scope_id":"x","expiration_time":1e300})");
  CHECK(never.value().expires.value() > WallTime(8'000'000'000s));
}

TEST_CASE("a request that makes no sense is refused with the reason", "[agent][timer]") {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", "JSON"},
      {"\xff", "JSON"},
      {"[]", "object"},
      {R"({"pid":7,"scope_id":"x","expiration_time":5})", "version"},
      {R"({"version":2,"pid":7,"scope_id":"x","expiration_time":5})", "version"},
      {R"({"version":1,"pid":0,"scope_id":"x","expiration_time":5})", "pid"},
      {R"({"version":1,"pid":-1,"scope_id":"x","expiration_time":5})", "pid"},
      {R"({"version":1,"pid":4294967303,"scope_id":"x","expiration_time":5})", "pid"},
      {R"({"version":1,"pid":"7","scope_id":"x","expiration_time":5})", "pid"},
      {R"({"version":1,"pid":7,"scope_id":4,"expiration_time":5})", "scope_id"},
      {R"({"version":1,"pid":7,"scope_id":"x"})", "expiration_time"},
      {R"({"version":1,"pid":7,"scope_id":"x","expiration_time":5,"signal":1000})", "signal"},
      {R"({"version":1,"pid":7,"scope_id":"x","expiration_time":5,"signal":"KILL"})", "signal"}};
  for (const auto& [line, why] : table) {
    INFO(line);
    const auto request = parse_timer_request(line);
    REQUIRE(!request);
    CHECK(request.error().message.find(why) != std::string::npos);
  }
}

namespace {

struct Fixture {
  Fixture() {
    timer = agent::FileTimer::create(
                loop, folder.at("pipe"),
                [this](const agent::FileTimers::Expired& one) { expired.push_back(one); }, *logger)
                .value();
  }

  void write(const std::string& bytes) const {
    std::ofstream(folder.at("pipe"), std::ios::binary) << bytes << std::flush;
  }

  bool run_until(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (!condition() && std::chrono::steady_clock::now() < deadline) loop.run_one_for(100ms);
    return condition();
  }

  [[nodiscard]] std::string log() const {
    logger->flush();
    return text->str();
  }

  static std::string request(int pid, double after, const std::string& scope = "x") {
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    return R"({"version":1,"scope_id":")" + scope + R"(","pid":)" + std::to_string(pid) +
           R"(,"expiration_time":)" + (after < 0 ? "-1" : std::to_string(now.count() + after)) +
           "}\n";
  }

  launcher::TemporaryFolder folder;
  std::shared_ptr<std::ostringstream> text = std::make_shared<std::ostringstream>();
  std::shared_ptr<Logger> logger =
      std::make_shared<Logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(*text));
  boost::asio::io_context loop{1};
  std::vector<agent::FileTimers::Expired> expired;
  std::unique_ptr<agent::FileTimer> timer;
};

}  // namespace

TEST_CASE("what is written into the pipe expires, unless it is released", "[agent][timer]") {
  Fixture fixture;
  fixture.write(Fixture::request(7, 0.02, "kept") + Fixture::request(8, 0.01, "released"));
  fixture.write(Fixture::request(8, -1, "released"));
  REQUIRE(fixture.run_until([&fixture] { return !fixture.expired.empty(); }));
  CHECK(fixture.expired.size() == 1);
  CHECK(fixture.expired[0].scope == "kept");
  CHECK(fixture.expired[0].pid == 7);
}

TEST_CASE("rubbish in the pipe is said once and harms nothing", "[agent][timer]") {
  Fixture fixture;
  fixture.write("rubbish\n" + std::string(10000, 'x') + "\n\n{}\n" + Fixture::request(7, 0));
  REQUIRE(fixture.run_until([&fixture] { return !fixture.expired.empty(); }));
  CHECK(fixture.expired[0].pid == 7);
  const auto log = fixture.log();
  CHECK(log.find("is ignored: it is not JSON") != std::string::npos);
  CHECK(log.find("is ignored") == log.rfind("is ignored"));
}

TEST_CASE("a line that no client could write at once is not kept", "[agent][timer]") {
  Fixture fixture;
  fixture.write(Fixture::request(7, 0, std::string(5000, 'x')) + Fixture::request(8, 0));
  REQUIRE(fixture.run_until([&fixture] { return !fixture.expired.empty(); }));
  CHECK(fixture.expired[0].pid == 8);
  CHECK(fixture.log().find("is ignored: it is too long") != std::string::npos);
}

TEST_CASE("a line may come in pieces", "[agent][timer]") {
  Fixture fixture;
  const auto request = Fixture::request(7, 0);
  fixture.write(request.substr(0, 20));
  fixture.loop.poll();
  fixture.write(request.substr(20));
  CHECK(fixture.run_until([&fixture] { return fixture.expired.size() == 1; }));
}

TEST_CASE("timers of a process that ended are gone, also those that were not read yet",
          "[agent][timer]") {
  Fixture fixture;
  fixture.write(Fixture::request(7, 0) + Fixture::request(8, 0));
  fixture.timer->forget(7);
  REQUIRE(fixture.run_until([&fixture] { return !fixture.expired.empty(); }));
  CHECK(fixture.expired.size() == 1);
  CHECK(fixture.expired[0].pid == 8);
}

TEST_CASE("the pipe is nobody else's, and goes with the timer", "[agent][timer]") {
  Fixture fixture;
  const auto make = [&fixture](const std::string& name) {
    return agent::FileTimer::create(fixture.loop, fixture.folder.at(name), {}, *fixture.logger);
  };
  CHECK(make("pipe").error().message.find("is read by another process") != std::string::npos);
  fixture.folder.write("file", "");
  CHECK(make("file").error().message.find("is no named pipe") != std::string::npos);
  CHECK(make("no/such").error().message.find("No such file") != std::string::npos);
  fixture.timer.reset();
  CHECK(!std::filesystem::exists(fixture.folder.at("pipe")));
  CHECK(std::filesystem::exists(fixture.folder.at("file")));
}

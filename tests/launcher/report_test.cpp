#include "launcher/report.hpp"

#include <csignal>

#include <boost/json.hpp>
#include <catch2/catch.hpp>

using namespace muster;
namespace json = boost::json;

namespace {

json::object parsed(const Verdict& verdict, const launcher::JobFacts& facts) {
  return json::parse(launcher::report(verdict, facts, "0.1.0")).as_object();
}

}  // namespace

TEST_CASE("a report of a success names no cause", "[launcher][report]") {
  const auto report = parsed({}, {.id = "seven", .took = std::chrono::milliseconds(1500)});
  CHECK(report.at("muster_report") == 1);
  CHECK(report.at("job") == "seven");
  CHECK(report.at("exit_code") == 0);
  CHECK(report.at("cause").is_null());
  CHECK(report.at("others").as_array().empty());
  CHECK(report.at("seconds") == 1.5);
}

TEST_CASE("a report holds all that is known of the cause", "[launcher][report]") {
  Verdict verdict;
  verdict.exit_code = 139;
  verdict.restarts = 2;
  WorkerFailure cause;
  cause.rank = {5};
  cause.local_rank = {1};
  cause.node_rank = {2};
  cause.node = "h2";
  cause.pid = 77;
  cause.status = ExitStatus{.signal = SIGSEGV, .core_dumped = true};
  cause.hint = "h";
  cause.detail = "d";
  cause.traceback = "t";
  cause.stderr_lines = {"a\xff", "b\x1b"};
  cause.ended_at = 1'700'000'000'000'001;
  cause.step = 400;
  cause.phase = "train";
  verdict.cause = cause;
  verdict.victims = {{{6}, {.signal = SIGTERM}}};
  const auto report = parsed(verdict, {.id = "j"});
  const auto expected = json::parse(R"({"class": "worker_error", "rank": 5, "local_rank": 1,
      "node_rank": 2, "node": "h2", "pid": 77, "signal": 11, "signal_name": "SIGSEGV",
      "core_dumped": true, "started": true, "hint": "h", "detail": "d", "traceback": "t",
      "stderr": ["a\ufffd", "b\u001b"], "ended_at": "2023-11-14T22:13:20.000001Z", "step": 400,
      "phase": "train"})");
  CHECK(report.at("cause") == expected);
  CHECK(
      report.at("victims").as_array().at(0) ==
      json::parse(R"({"rank": 6, "signal": 15, "signal_name": "SIGTERM", "core_dumped": false})"));
  CHECK(report.at("restarts") == 2);
}

TEST_CASE("what could not be killed is listed where there is any", "[launcher][report]") {
  CHECK(parsed({}, {.survivors = {7, 8}}).at("survivors") == json::array{7, 8});
  CHECK(!parsed({}, {}).contains("survivors"));
}

TEST_CASE("a lost node has no rank, and a worker that was not started no end",
          "[launcher][report]") {
  Verdict verdict;
  verdict.cause.emplace();
  verdict.cause->cause = Cause::LostNode;
  verdict.others.emplace_back();
  const auto report = parsed(verdict, {});
  CHECK(report.at("cause").as_object() == json::object{{"class", "lost_node"}, {"node_rank", 0}});
  const auto& other = report.at("others").as_array().at(0).as_object();
  CHECK(other.at("started") == false);
  CHECK(!other.contains("exit_code"));
}

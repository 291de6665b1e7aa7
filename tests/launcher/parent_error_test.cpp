#include "launcher/parent_error.hpp"

#include <csignal>

#include <boost/json.hpp>
#include <catch2/catch.hpp>

using namespace muster;
using launcher::parent_error;
namespace json = boost::json;

namespace {

Verdict failed(ExitStatus status) {
  Verdict verdict;
  verdict.exit_code = 3;
  verdict.summary = "rank 2 failed";
  verdict.cause.emplace();
  verdict.cause->status = status;
  return verdict;
}

}  // namespace

TEST_CASE("what the worker recorded is passed on, with its exit code", "[launcher][parent_error]") {
  const auto written = json::parse(parent_error(
      failed({.code = 3}),
      R"({"message": {"message": "KeyError: 1", "extraInfo": {"timestamp": "17"}}, "more": 4})",
      0));
  CHECK(written == json::parse(R"({"message": {"message": "KeyError: 1",
      "extraInfo": {"timestamp": "17"}, "errorCode": 3}, "more": 4})"));
}

TEST_CASE("a flat error file is passed on as it is", "[launcher][parent_error]") {
  const std::string flat = R"(  {"message": "broken", "timestamp": 5})";
  CHECK(parent_error(failed({.code = 3}), flat, 0) == flat);
}

TEST_CASE("where nothing sensible was recorded what is known stands there",
          "[launcher][parent_error]") {
  auto verdict = failed({.signal = SIGKILL});
  verdict.cause->detail = "killed for memory";
  verdict.cause->stderr_lines = {"one\xff", "two"};
  verdict.cause->ended_at = 1'700'000'000'500'000;
  for (const std::string recorded : {"", "garbage", "[1]", "{}", R"({"message": 5})"}) {
    const auto written = json::parse(parent_error(verdict, recorded, 0));
    CHECK(written == json::parse(R"({"message": {"message": "rank 2 failed: killed for memory",
        "extraInfo": {"py_callstack": "one\ufffd\ntwo", "timestamp": "1700000000"},
        "errorCode": -9}})"));
  }
}

TEST_CASE("the exception is the message where there is a traceback", "[launcher][parent_error]") {
  auto verdict = failed({.code = 1});
  verdict.cause->traceback = "Traceback (most recent call last):\n  f()\nKeyError: 'a'\n";
  const auto written = json::parse(parent_error(verdict, "", 0));
  CHECK(written.at("message").at("message") == "KeyError: 'a'");
}

TEST_CASE("an error of our own is told with the time and our exit code",
          "[launcher][parent_error]") {
  Verdict verdict;
  verdict.exit_code = 75;
  verdict.summary = "no rendezvous";
  const auto written = json::parse(parent_error(verdict, "", 1'700'000'000'000'000));
  CHECK(written == json::parse(R"({"message": {"message": "no rendezvous",
      "extraInfo": {"py_callstack": "", "timestamp": "1700000000"}, "errorCode": 75}})"));
}

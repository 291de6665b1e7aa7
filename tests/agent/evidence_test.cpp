#include "agent/core/evidence.hpp"

#include <csignal>

#include <catch2/catch.hpp>

using namespace muster;
using agent::assess;

namespace {

Cause cause_of(ExitStatus status, std::vector<std::string> lines = {}) {
  return assess({.pid = 1, .status = status, .has_peers = true, .stderr_lines = std::move(lines)})
      .cause;
}

}  // namespace

TEST_CASE("a worker's own fault is told from a signal that came from outside",
          "[agent][evidence]") {
  for (const int number : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) {
    CHECK(cause_of({.signal = number}) == Cause::WorkerError);
  }
  for (const int number : {SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGUSR1}) {
    CHECK(cause_of({.signal = number}) == Cause::OutsideSignal);
  }
  CHECK(cause_of({.code = 3}) == Cause::WorkerError);
}

TEST_CASE("a signal that muster passed on did not come from outside", "[agent][evidence]") {
  const auto failure = assess({.pid = 1, .status = {.signal = SIGUSR1}, .was_passed_on = true});
  CHECK(failure.detail == "muster passed that signal on, and the worker does not handle it");
}

TEST_CASE("whoever only reports the loss of a peer is a victim", "[agent][evidence]") {
  CHECK(cause_of({.code = 1},
                 {"RuntimeError: [gloo/pair.cc:598] Connection closed by peer [127.0.0.1]:4711"}) ==
        Cause::PeerLoss);
  CHECK(cause_of({.code = 1}, {"ValueError: bad shape"}) == Cause::WorkerError);
}

TEST_CASE("a lost connection to anything else is the worker's own error", "[agent][evidence]") {
  CHECK(cause_of({.code = 1}, {"ConnectionError: [Errno 111] Connection refused"}) ==
        Cause::WorkerError);
  CHECK(cause_of({.code = 1}, {"torch.distributed.DistNetworkError: Connection refused"}) ==
        Cause::PeerLoss);
  CHECK(
      assess({.pid = 1, .status = {.code = 1}, .stderr_lines = {"gloo: Connection closed by peer"}})
          .cause == Cause::WorkerError);  // Alone in the job.
}

TEST_CASE("an old word of a lost peer does not hide the real error", "[agent][evidence]") {
  CHECK(cause_of({.code = 1}, {"retrying after Broken pipe", "Traceback (most recent call last):",
                               "  File \"x.py\", line 1, in <module>", "ValueError: bad"}) ==
        Cause::WorkerError);
}

TEST_CASE("the kernel's evidence beats the signal", "[agent][evidence]") {
  const auto failure = assess(
      {.pid = 1, .status = {.signal = SIGKILL}, .out_of_memory = "cgroup /x reached 60 MiB"});
  CHECK(failure.cause == Cause::OutOfMemory);
  CHECK(failure.detail == "cgroup /x reached 60 MiB");
  CHECK(failure.hint.find("memory did not suffice") != std::string::npos);
}

TEST_CASE("who is ended by a timer of its own has failed by itself", "[agent][evidence]") {
  const auto failure = assess({.pid = 1,
                               .status = {.signal = SIGKILL},
                               .expired_timer = "the file timer 'x' of 1.0 s expired"});
  CHECK(failure.cause == Cause::WorkerError);
  CHECK(failure.detail == "the file timer 'x' of 1.0 s expired");
}

TEST_CASE("the last traceback is cut out, prefixes and all", "[agent][evidence]") {
  CHECK(agent::python_traceback(
            {"x", "[r0] Traceback (most recent call last):", "[r0]   File \"a.py\", line 2",
             "[r0]     f()", "[r0] KeyError: 'a'", "[r0] bye"}) ==
        "Traceback (most recent call last):\n  File \"a.py\", line 2\n    f()\nKeyError: 'a'");
  CHECK(agent::python_traceback(
            {"Traceback (most recent call last):", "  File \"a.py\", line 1", "KeyError: 1",
             "During handling of the above exception, another exception occurred:", "",
             "Traceback (most recent call last):", "  File \"b.py\", line 2", "ValueError: 2"}) ==
        "Traceback (most recent call last):\n  File \"b.py\", line 2\nValueError: 2");
  CHECK(agent::python_traceback({"no", "error"}).empty());
  CHECK(agent::python_traceback({"RuntimeError: Caught KeyError in DataLoader worker process 0.",
                                 "Original Traceback (most recent call last):",
                                 "  File \"loop.py\", line 302", "KeyError: 'a'", ""}) ==
        "Traceback (most recent call last):\n  File \"loop.py\", line 302\nKeyError: 'a'");
}

TEST_CASE("what the worker recorded in its error file beats what was found in its stderr",
          "[agent][evidence]") {
  const auto failure =
      assess({.pid = 1, .status = {.code = 1}, .stderr_lines = {"noise"}, .recorded = "recorded"});
  CHECK(failure.traceback == "recorded");
}

TEST_CASE("a worker's own failure of a known kind gets a hint, one from outside does not",
          "[agent][evidence]") {
  const std::vector<std::string> lines = {"OSError: [Errno 28] No space left on device"};
  CHECK(!assess({.pid = 1, .status = {.code = 1}, .stderr_lines = lines}).hint.empty());
  CHECK(assess({.pid = 1, .status = {.signal = SIGKILL}, .stderr_lines = lines}).hint.empty());
}

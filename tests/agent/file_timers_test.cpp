#include "agent/core/file_timers.hpp"

#include <catch2/catch.hpp>

using namespace muster;
using namespace std::chrono_literals;
using agent::FileTimers;
using agent::WallTime;

namespace {

const WallTime kNow{1000s};

agent::TimerRequest at(int pid, const std::string& scope, WallTime expires, int signal = 9) {
  return {.pid = pid, .scope = scope, .expires = expires, .signal = signal};
}
agent::TimerRequest released(int pid, const std::string& scope) {
  return {.pid = pid, .scope = scope, .expires = std::nullopt, .signal = 9};
}

}  // namespace

TEST_CASE("a timer expires at its time, once", "[agent][timer]") {
  FileTimers timers;
  CHECK(timers.take(kNow, at(7, "step", kNow + 2s)));
  CHECK(timers.next_deadline() == kNow + 2s);
  CHECK(timers.expire(kNow + 1999ms).empty());
  const auto expired = timers.expire(kNow + 2s);
  REQUIRE(expired.size() == 1);
  CHECK(expired[0].pid == 7);
  CHECK(expired[0].scope == "step");
  CHECK(expired[0].after == 2s);
  CHECK(expired[0].signal == 9);
  CHECK(timers.expire(kNow + 9s).empty());
  CHECK(!timers.next_deadline());
}

TEST_CASE("a timer that was released, or set anew, does not expire", "[agent][timer]") {
  FileTimers timers;
  CHECK(timers.take(kNow, at(7, "step", kNow + 2s)));
  SECTION("released") {
    CHECK(timers.take(kNow, released(7, "step")));
    CHECK(!timers.next_deadline());
  }
  SECTION("released by another process, or for another scope") {
    CHECK(timers.take(kNow, released(8, "step")));
    CHECK(timers.take(kNow, released(7, "save")));
    CHECK(timers.next_deadline() == kNow + 2s);
  }
  SECTION("set anew") {
    CHECK(timers.take(kNow + 1s, at(7, "step", kNow + 5s)));
    CHECK(timers.expire(kNow + 3s).empty());
    CHECK(timers.expire(kNow + 5s).at(0).after == 4s);
  }
  SECTION("set anew, too late") {
    CHECK(timers.take(kNow + 1s, at(7, "step", kNow)));
    CHECK(timers.expire(kNow + 1s).at(0).after == 0s);
  }
  SECTION("its process ended") {
    timers.forget(7);
    CHECK(!timers.next_deadline());
  }
}

TEST_CASE("a process is signalled for the first of its timers only", "[agent][timer]") {
  FileTimers timers;
  CHECK(timers.take(kNow, at(7, "b", kNow + 1s)));
  CHECK(timers.take(kNow, at(7, "a", kNow + 2s)));
  CHECK(timers.take(kNow, at(8, "c", kNow + 500ms, 0)));
  CHECK(timers.take(kNow, at(8, "d", kNow + 3s, 0)));
  const auto expired = timers.expire(kNow + 10s);
  REQUIRE(expired.size() == 3);
  CHECK(expired[0].scope == "c");  // What only tells leaves the process its others.
  CHECK(expired[1].scope == "b");
  CHECK(expired[2].scope == "d");
}

TEST_CASE("there are only so many timers", "[agent][timer]") {
  FileTimers timers;
  for (std::size_t count = 0; count < FileTimers::kMaxTimers; ++count)
    REQUIRE(timers.take(kNow, at(7, std::to_string(count), kNow + 1s)));
  CHECK(!timers.take(kNow, at(7, "one more", kNow + 1s)));
  CHECK(timers.take(kNow, at(7, "3", kNow + 2s)));  // Is there.
  CHECK(timers.take(kNow, released(7, "4")));
  CHECK(timers.take(kNow, at(7, "one more", kNow + 1s)));
  CHECK(timers.size() == FileTimers::kMaxTimers);
}

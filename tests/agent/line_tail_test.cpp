#include "agent/core/line_tail.hpp"

#include <catch2/catch.hpp>

using muster::agent::LineTail;
using Lines = std::vector<std::string>;

TEST_CASE("the tail holds whole lines and the unfinished one, however the bytes are cut",
          "[agent][tail]") {
  LineTail tail;
  tail.add("on");
  tail.add("e\ntw");
  tail.add("o\n\nthree");
  CHECK(tail.lines() == Lines{"one", "two", "", "three"});
}

TEST_CASE("of a progress bar the last state counts", "[agent][tail]") {
  LineTail tail;
  tail.add("10%\r20%\r");
  CHECK(tail.lines() == Lines{"20%"});
  tail.add("30%\n");
  CHECK(tail.lines() == Lines{"30%"});
  tail.add("a\r\nb\n");
  CHECK(tail.lines() == Lines{"30%", "a", "b"});
  tail.add("40%\r\r");
  tail.add("\r\nc\rd");
  CHECK(tail.lines() == Lines{"30%", "a", "b", "40%", "d"});
}

TEST_CASE("the tail keeps the last 200 lines", "[agent][tail]") {
  LineTail tail;
  for (int i = 0; i < 1000; ++i) tail.add(std::to_string(i) + "\n");
  CHECK(tail.lines().size() == LineTail::kMaxLines);
  CHECK(tail.lines().front() == "800");
  CHECK(tail.lines().back() == "999");
  tail.add("open");
  CHECK(tail.lines().size() == LineTail::kMaxLines);
  CHECK(tail.lines().front() == "801");
}

TEST_CASE("a line without end takes bounded memory", "[agent][tail]") {
  LineTail tail;
  for (int i = 0; i < 1000; ++i) tail.add(std::string(1000, 'x'));
  REQUIRE(tail.lines().size() == 1);
  CHECK(tail.lines()[0].size() == LineTail::kMaxLineBytes + 3);
  CHECK(tail.lines()[0].ends_with("x..."));
}

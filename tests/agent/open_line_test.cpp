#include "agent/core/open_line.hpp"

#include <catch2/catch.hpp>

namespace muster::agent {
namespace {

struct Screen {
  void add(const char& owner, const Line& line) {
    const std::string prefix = {'[', owner, ']'};
    open.add(text, &owner, prefix, line);
  }
  OpenLine open;
  std::string text;
};

constexpr char kA = 'a';
constexpr char kB = 'b';

}  // namespace

TEST_CASE("the owner of an open line goes on in it", "[agent][lines]") {
  Screen screen;
  screen.add(kA, {.text = "name? ", .has_ended = false});
  CHECK(screen.open.is_open());
  screen.add(kA, {.text = "name? x", .shown = 6});
  CHECK_FALSE(screen.open.is_open());
  CHECK(screen.text == "[a]name? x\n");
}

TEST_CASE("another stream ends an open line, and the rest has its prefix again", "[agent][lines]") {
  Screen screen;
  screen.add(kA, {.text = "name? ", .has_ended = false});
  screen.add(kB, {.text = "hello"});
  screen.add(kA, {.text = "name? x", .shown = 6});
  screen.add(kA, {.text = "next"});
  CHECK(screen.text == "[a]name? \n[b]hello\n[a]x\n[a]next\n");
}

TEST_CASE("a line that was ended for its owner is not ended twice", "[agent][lines]") {
  for (const std::string_view end : {"", "\r"}) {
    Screen screen;
    screen.add(kA, {.text = "half", .has_ended = false});
    screen.open.end(screen.text);
    screen.text += "log\n";
    screen.open.end(screen.text);
    screen.add(kA, {.text = "half" + std::string(end), .shown = 4});
    CHECK(screen.text == "[a]half\nlog\n");
  }
}

TEST_CASE("a state is drawn over the one before, unless that line was ended", "[agent][lines]") {
  Screen screen;
  screen.add(kA, {.text = "1%", .has_ended = false});
  screen.add(kA, {.text = "2%", .replaces = true, .has_ended = false});
  CHECK(screen.text == "[a]1%\r[a]2%");
  screen.add(kB, {.text = "3%", .has_ended = false});
  screen.add(kA, {.text = "4%", .replaces = true});
  CHECK(screen.text == "[a]1%\r[a]2%\n[b]3%\n[a]4%\n");
}

TEST_CASE("empty lines are lines", "[agent][lines]") {
  Screen screen;
  screen.add(kA, {.text = ""});
  CHECK(screen.text == "[a]\n");
}

}  // namespace muster::agent

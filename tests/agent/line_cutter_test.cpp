#include "agent/core/line_cutter.hpp"

#include <vector>

#include <catch2/catch.hpp>

namespace muster::agent {
namespace {

using Lines = std::vector<std::string>;

/// What a console shows of a stream: each line, an unfinished one as `text...`.
struct Shown {
  void add(std::string_view bytes) {
    cutter.add(bytes, [this](const Line& line) { take(line); });
  }
  void finish() {
    cutter.finish([this](const Line& line) { take(line); });
  }
  bool show_unfinished() {
    const auto line = cutter.unfinished();
    if (!line) return false;
    take(*line);
    cutter.mark_shown();
    return true;
  }
  void take(const Line& line) {
    lines.push_back((line.replaces    ? "over "
                     : line.shown > 0 ? "+"
                                      : "") +
                    std::string(line.text.substr(line.shown)) + (line.has_ended ? "" : "..."));
  }

  LineCutter cutter;
  Lines lines;
};

}  // namespace

TEST_CASE("lines are whole, however the bytes are cut", "[agent][lines]") {
  const std::string text("one\ntwo\n\n\0\xff\r\nlast", 17);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    Shown shown;
    shown.add(std::string_view(text).substr(0, cut));
    shown.add(std::string_view(text).substr(cut));
    shown.finish();
    CHECK(shown.lines == Lines{"one", "two", "", std::string("\0\xff\r", 3), "last"});
  }
}

TEST_CASE("an unfinished line is shown once, and then what is new of it", "[agent][lines]") {
  Shown shown;
  CHECK_FALSE(shown.show_unfinished());
  shown.add("done\nname? ");
  CHECK(shown.show_unfinished());
  CHECK_FALSE(shown.show_unfinished());
  shown.add("x");
  shown.add("y\n");
  CHECK(shown.lines == Lines{"done", "name? ...", "+xy"});
}

TEST_CASE("of a progress bar the last state is shown, over the one before", "[agent][lines]") {
  SECTION("with returns before each state") {
    Shown shown;
    shown.add("\r10%\r20%");
    shown.show_unfinished();
    shown.add("\r30%");
    shown.add("\r40%");
    shown.show_unfinished();
    shown.add("\r100%\n");
    CHECK(shown.lines == Lines{"20%...", "over 40%...", "over 100%"});
  }
  SECTION("with returns behind each state") {
    Shown shown;
    shown.add("10%\r20%\r");
    shown.show_unfinished();
    CHECK_FALSE(shown.show_unfinished());
    shown.add("30%\r");
    shown.show_unfinished();
    shown.add("\n");
    CHECK(shown.lines == Lines{"20%...", "over 30%...", "+\r"});
  }
  SECTION("in one piece") {
    Shown shown;
    shown.add("10%\r20%\nno bar\n");
    CHECK(shown.lines == Lines{"20%", "no bar"});
  }
}

TEST_CASE("what carriage returns draw is told from a prompt", "[agent][lines]") {
  const auto is_redrawn = [](std::string_view bytes) {
    LineCutter cutter;
    cutter.add(bytes, [](const Line&) {});
    return cutter.unfinished()->is_redrawn;
  };
  CHECK_FALSE(is_redrawn("1%\r2%\n? "));
  CHECK(is_redrawn("\r1%"));
  CHECK(is_redrawn("1%\r"));
}

TEST_CASE("a line that is too long becomes several, in bounded memory", "[agent][lines]") {
  for (const std::size_t part : {1'000U, 65'536U, 100'000U}) {
    Shown shown;
    std::string text(LineCutter::kLineLimit * 2 + 10, 'x');
    text += "\nshort\n";
    for (std::size_t at = 0; at < text.size(); at += part) {
      shown.add(std::string_view(text).substr(at, part));
    }
    CHECK(shown.lines == Lines{std::string(LineCutter::kLineLimit, 'x'),
                               std::string(LineCutter::kLineLimit, 'x'), "xxxxxxxxxx", "short"});
  }
}

}  // namespace muster::agent

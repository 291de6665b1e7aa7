#include "agent/run/console.hpp"

#include "base/posix/stream.hpp"
#include "tests/rendezvous/log_lines.hpp"

#include <array>
#include <chrono>
#include <string>

#include <catch2/catch.hpp>

namespace muster::agent {
namespace {

constexpr auto kDeadline = std::chrono::seconds(30);

/// A console that writes into a pipe, and whoever reads that, or does not.
struct Reader {
  explicit Reader(Duration patience)
      : console(loop, pipe.writer.get(), "stdout", logger, patience) {
    posix::set_non_blocking(pipe.reader.get());
  }

  /// Writes numbered lines until those who print are held up; returns the next number.
  int fill(int next) {
    while (!console.congested()) console.write_lines(line(next++));
    return next;
  }
  static std::string line(int number) { return "line " + std::to_string(number) + "\n"; }
  /// Runs the loop until nobody is held up any more.
  void wait_until_clear() {
    bool is_clear = false;
    console.when_clear([&is_clear] { is_clear = true; });
    const auto deadline = std::chrono::steady_clock::now() + kDeadline;
    while (!is_clear && std::chrono::steady_clock::now() < deadline) loop.run_one_for(kDeadline);
    REQUIRE(is_clear);
  }
  /// Reads what is there, and what the console has to write then.
  std::string read_all() {
    std::string all;
    std::array<char, 65536> buffer;
    for (bool is_over = false; !is_over;) {
      const auto got = posix::read_now(pipe.reader.get(), buffer.data(), buffer.size());
      all.append(buffer.data(), got.size);
      loop.restart();
      is_over = loop.poll() == 0 && got.size == 0;
    }
    return all;
  }

  boost::asio::io_context loop{1};
  std::shared_ptr<LogLines> log = std::make_shared<LogLines>();
  Logger logger{"test", log};
  posix::Pipe pipe = posix::make_pipe().value();
  Console console;
};

std::string lines(int from, int to) {
  std::string all;
  for (int number = from; number < to; ++number) all += Reader::line(number);
  return all;
}

}  // namespace

TEST_CASE("a reader that is slow holds up those who print until it reads", "[agent][output]") {
  Reader it(kDeadline);
  const int end = it.fill(0);
  CHECK(it.console.holds_up());
  bool is_clear = false;
  it.console.when_clear([&is_clear] { is_clear = true; });
  CHECK(it.read_all() == lines(0, end));
  CHECK(is_clear);
  CHECK(it.log->take().empty());
}

TEST_CASE("a reader that takes nothing holds them up no longer, and loses whole lines",
          "[agent][output]") {
  Reader it(std::chrono::milliseconds(1));
  const int kept = it.fill(0);
  it.wait_until_clear();
  CHECK_FALSE(it.console.holds_up());
  CHECK(it.log->take().find("nobody has read stdout for 0.001 s") != std::string::npos);

  const auto lost = lines(kept, kept + 1000);
  it.console.write_lines(lost);
  it.console.write("begun ");
  it.console.write("meanwhile ");
  CHECK(it.log->take().empty());

  const auto shown = it.read_all();
  CHECK(it.log->take() == "warning output lost: " + std::to_string(lost.size()) +
                              " bytes, while nobody read stdout\n");
  it.console.write("and ended\n");
  CHECK(shown + it.read_all() == lines(0, kept) + "begun meanwhile and ended\n");
}

TEST_CASE("a line of which nobody read the end is ended before the next", "[agent][output]") {
  Reader it(std::chrono::milliseconds(1));
  const int kept = it.fill(0);
  it.console.write("cut ");
  it.wait_until_clear();
  it.console.write("here\nand another\nwhole");
  CHECK(it.read_all() == lines(0, kept) + "cut \nwhole");
}

TEST_CASE("a prompt that nobody read begins again with its prefix", "[agent][output]") {
  Reader it(std::chrono::milliseconds(1));
  const int kept = it.fill(0);
  it.wait_until_clear();
  const auto show = [&it](const Line& line) {
    std::string text;
    it.console.open_line().add(text, &it, "[0]:", line);
    it.console.write_lines(text);
  };
  it.console.write_lines("lost\n");
  show({.text = "name? ", .has_ended = false});
  CHECK(it.read_all() == lines(0, kept));
  CHECK(it.log->take().find(std::to_string(sizeof "lost\n[0]:name? " - 1) + " bytes") !=
        std::string::npos);
  show({.text = "name? you", .shown = 6});
  CHECK(it.read_all() == "[0]:you\n");
}

TEST_CASE("a line without end that nobody reads takes no memory", "[agent][output]") {
  Reader it(std::chrono::milliseconds(1));
  const int kept = it.fill(0);
  it.wait_until_clear();
  const std::string piece(Console::kLineRoom + 1, 'x');
  it.console.write(piece);
  CHECK(it.read_all() == lines(0, kept));
  CHECK(it.log->take().find(std::to_string(piece.size()) + " bytes") != std::string::npos);
}

}  // namespace muster::agent

#include "agent/run/log_file.hpp"

#include "tests/agent/one_round.hpp"

#include <catch2/catch.hpp>

namespace muster::agent {
namespace {

struct Log {
  explicit Log(Rotation rotation) : file(LogFile::open(path(), rotation, *logger).value()) {}
  std::string path() const { return (folder / "stdout.log").string(); }
  std::string piece(const std::string& suffix) const {
    std::ifstream in(path() + suffix);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  Folder folder;
  std::shared_ptr<Logger> logger = make_stderr_logger(spdlog::level::off);
  LogFile file;
};

}  // namespace

TEST_CASE("a log file is put aside at the end of a line before it is too large", "[agent][log]") {
  for (const std::size_t part : {1U, 3U, 100U}) {
    Log log({.max_size = 10, .keep = 2});
    const std::string text = "one\ntwo\nthree\nfour\nfive\nsix\n";
    for (std::size_t at = 0; at < text.size(); at += part) log.file.write(text.substr(at, part));
    INFO(part);
    CHECK(log.piece(".2") + log.piece(".1") + log.piece("") ==
          text.substr(text.size() - log.piece(".2").size() - log.piece(".1").size() -
                      log.piece("").size()));
    for (const auto* const suffix : {"", ".1", ".2"}) {
      // A line that comes in parts may be too long, which shows when it is there.
      CHECK(log.piece(suffix).size() <= (part == 100 ? 10 : 10 + 5));
      CHECK((log.piece(suffix).empty() || log.piece(suffix).ends_with('\n')));
    }
    CHECK_FALSE(log.piece(".2").empty());
    CHECK_FALSE(std::filesystem::exists(log.path() + ".3"));
  }
}

TEST_CASE("a line that is larger than a log file stays whole, up to a limit", "[agent][log]") {
  Log log({.max_size = 4, .keep = 9});
  log.file.write("a\n");
  log.file.write("a line");
  log.file.write(" of several parts\nb\n");
  CHECK(log.piece(".2") == "a\n");
  CHECK(log.piece(".1") == "a line of several parts\n");
  CHECK(log.piece("") == "b\n");
  log.file.write(std::string(LogFile::kLineRoom * 3, 'x'));
  CHECK(log.piece(".1").size() == LogFile::kLineRoom + 4);
}

TEST_CASE("no older pieces are kept where none are wanted, and no limit is none", "[agent][log]") {
  Log log({.max_size = 4, .keep = 0});
  log.file.write("one\ntwo\n");
  CHECK(log.piece("") == "two\n");
  CHECK_FALSE(std::filesystem::exists(log.path() + ".1"));
  Log endless({});
  endless.file.write(std::string(100'000, 'x'));
  CHECK(endless.piece("").size() == 100'000);
}

}  // namespace muster::agent

#include "base/posix/shared_note.hpp"

#include "base/posix/fd.hpp"

#include <csignal>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

using namespace muster;

namespace {

constexpr int kPatienceMs = 20'000;  // For what must happen, on the slowest machine.

}  // namespace

TEST_CASE("a note is read as it was last written, by another process", "[base][posix]") {
  const auto note = posix::SharedNote::create().value();
  CHECK(note.read().empty());
  const int writer = ::fork();
  if (writer == 0) {
    const bool written = note.write("first") && note.write("second, and longer");
    ::_exit(written ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(writer, &status, 0) == writer);
  REQUIRE(status == 0);
  CHECK(note.read() == "second, and longer");
  CHECK(note.write(""));
  CHECK(note.read().empty());
}

TEST_CASE("a note that is too long leaves the old one", "[base][posix]") {
  const auto note = posix::SharedNote::create().value();
  const std::string longest(posix::SharedNote::kCapacity, 'x');
  CHECK(note.write(longest));
  CHECK_FALSE(note.write(longest + "y"));
  CHECK(note.read() == longest);
}

TEST_CASE("a writer that is killed at any instant leaves a whole note", "[base][posix]") {
  for (int trial = 0; trial < 50; ++trial) {
    const auto note = posix::SharedNote::create().value();
    REQUIRE(note.write("the first"));
    auto begun = posix::make_pipe().value();
    const int writer = ::fork();
    if (writer == 0) {
      const std::string texts[2] = {std::string(9000, 'a'), std::string(12000, 'b')};
      (void)note.write(texts[0]);
      begun.writer.reset();  // Which ends the reader's wait.
      for (std::size_t turn = 1;; ++turn) (void)note.write(texts[turn % 2]);
    }
    begun.writer.reset();
    pollfd waiting{.fd = begun.reader.get(), .events = POLLIN, .revents = 0};
    REQUIRE(::poll(&waiting, 1, kPatienceMs) == 1);
    for (int reading = 0; reading < trial; ++reading) (void)note.read();  // Another instant each.
    ::kill(writer, SIGKILL);
    REQUIRE(::waitpid(writer, nullptr, 0) == writer);
    const auto text = note.read();
    const bool is_whole = text == std::string(9000, 'a') || text == std::string(12000, 'b');
    CHECK(is_whole);
  }
}

#include "base/posix/shared_note.hpp"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

using namespace muster;

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
    const int writer = ::fork();
    if (writer == 0) {
      const std::string texts[2] = {std::string(9000, 'a'), std::string(12000, 'b')};
      for (std::size_t turn = 0;; ++turn) (void)note.write(texts[turn % 2]);
    }
    while (note.read() == "the first") ::usleep(10);
    ::usleep(static_cast<useconds_t>(trial * 7));
    ::kill(writer, SIGKILL);
    REQUIRE(::waitpid(writer, nullptr, 0) == writer);
    const auto text = note.read();
    const bool is_whole = text == std::string(9000, 'a') || text == std::string(12000, 'b');
    CHECK(is_whole);
  }
}

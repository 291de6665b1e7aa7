#include "agent/run/input_copies.hpp"

#include "base/posix/signals.hpp"
#include "base/posix/stream.hpp"

#include <array>
#include <csignal>
#include <string>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace muster::agent {
namespace {

struct Copies {
  explicit Copies(Duration patience = InputCopies::kPatience)
      : pipe(posix::make_pipe().value()), copies(loop, pipe.reader.get(), *logger, patience) {
    posix::set_non_blocking(pipe.writer.get());
    posix::ignore_signal(SIGPIPE);
  }

  posix::Fd reader(std::uint32_t rank) {
    auto fd = copies.add_reader({rank}).value();
    posix::set_non_blocking(fd.get());
    return fd;
  }
  /// Writes as much of it as is taken.
  std::size_t write(std::string_view bytes) {
    std::size_t written = 0;
    for (bool is_taken = true; is_taken && written < bytes.size();) {
      const auto size = ::write(pipe.writer.get(), bytes.data() + written, bytes.size() - written);
      is_taken = size > 0;
      if (is_taken) written += static_cast<std::size_t>(size);
      poll();
    }
    return written;
  }
  void poll() {
    loop.restart();
    while (loop.poll() > 0) {
    }
  }
  std::string read(const posix::Fd& fd) {
    std::string all;
    std::array<char, 65536> buffer;
    for (int idle = 0; idle < 2;) {
      const auto got = posix::read_now(fd.get(), buffer.data(), buffer.size());
      all.append(buffer.data(), got.size);
      poll();
      idle = got.size > 0 ? 0 : idle + 1;
    }
    return all;
  }
  static bool has_ended(const posix::Fd& fd) {
    char c = 0;
    return posix::read_now(fd.get(), &c, 1).end;
  }

  boost::asio::io_context loop{1};
  std::shared_ptr<Logger> logger = make_stderr_logger(spdlog::level::off);
  posix::Pipe pipe;
  InputCopies copies;
};

}  // namespace

TEST_CASE("every worker gets all of the input and its end", "[agent][input]") {
  Copies it;
  it.copies.begin_round(2);
  const auto first = it.reader(0);
  CHECK(it.write("early ") == 6);
  const auto second = it.reader(1);
  it.write("late");
  it.pipe.writer.reset();
  it.poll();
  CHECK(it.read(first) == "early late");
  CHECK(it.read(second) == "early late");
  CHECK(Copies::has_ended(first));
  CHECK(Copies::has_ended(second));
}

TEST_CASE("a worker that does not read holds up a bounded part of the input", "[agent][input]") {
  Copies it;
  it.copies.begin_round(2);
  const auto mute = it.reader(0);
  const auto keen = it.reader(1);
  const std::string text(65536, 'x');
  std::size_t taken = 0;
  for (int part = 0; part < 100; ++part) {
    taken += it.write(text);
    it.read(keen);
  }
  CHECK(taken >= InputCopies::kBufferLimit);
  CHECK(taken <= InputCopies::kBufferLimit + 4 * text.size());
}

TEST_CASE("a worker that does not read holds up nobody for ever", "[agent][input]") {
  Copies it(Duration::zero());
  it.copies.begin_round(2);
  const auto mute = it.reader(0);
  const auto keen = it.reader(1);
  const std::string text(65536, 'x');
  std::size_t read = 0;
  for (int part = 0; part < 100; ++part) {
    CHECK(it.write(text) == text.size());
    read += it.read(keen).size();
  }
  CHECK(read == 100 * text.size());
  const auto rest = it.read(mute);
  CHECK(rest == text.substr(0, rest.size()));
  CHECK(Copies::has_ended(mute));
}

TEST_CASE("a worker that closed its input is done with", "[agent][input]") {
  Copies it;
  it.copies.begin_round(2);
  auto gone = it.reader(0);
  const auto keen = it.reader(1);
  gone.reset();
  const std::string text(65536, 'x');
  for (int part = 0; part < 40; ++part) {
    CHECK(it.write(text) == text.size());
    CHECK(it.read(keen).size() == text.size());
  }
}

TEST_CASE("workers that are started again get the rest of the input", "[agent][input]") {
  Copies it;
  it.copies.begin_round(2);
  {
    const auto first = it.reader(0);
    const auto second = it.reader(1);
    it.write("one ");
    CHECK(it.read(first) == "one ");
  }
  it.copies.begin_round(1);
  const auto again = it.reader(0);
  it.write("two");
  it.pipe.writer.reset();
  it.poll();
  CHECK(it.read(again) == "two");
  it.copies.begin_round(1);
  const auto third = it.reader(0);
  it.poll();
  CHECK(Copies::has_ended(third));
}

}  // namespace muster::agent

#include "agent/run/file_timer.hpp"

#include "agent/run/timer_request.hpp"
#include "base/posix/stream.hpp"
#include "base/posix/wall_clock.hpp"
#include "base/text.hpp"

#include <array>
#include <chrono>
#include <climits>
#include <utility>

namespace muster::agent {
namespace asio = boost::asio;
namespace {

/// What a client can write at once, and so the longest line that is not torn.
constexpr std::size_t kMaxLine = PIPE_BUF;

WallTime wall_now() { return WallTime(std::chrono::microseconds(posix::wall_now())); }

}  // namespace

Result<std::unique_ptr<FileTimer>> FileTimer::create(asio::io_context& loop,
                                                     const std::string& path, OnExpired on_expired,
                                                     Logger& logger) {
  auto fifo = posix::Fifo::make(path);
  if (!fifo) return pass(fifo.error());
  auto copy = posix::duplicate(fifo->descriptor());
  if (!copy) return pass(copy.error());
  std::unique_ptr<FileTimer> made(
      new FileTimer(loop, *std::move(fifo), std::move(on_expired), logger));
  made->wait_.assign(copy->release());
  made->watch();
  return made;
}

FileTimer::FileTimer(asio::io_context& loop, posix::Fifo fifo, OnExpired on_expired, Logger& logger)
    : fifo_(std::move(fifo)),
      wait_(loop),
      timer_(loop),
      on_expired_(std::move(on_expired)),
      logger_(logger) {}

void FileTimer::watch() {
  wait_.async_wait(asio::posix::stream_descriptor::wait_read,
                   life_.guard([this](const boost::system::error_code& error) {
                     if (error) return;
                     read();
                     arm();
                     watch();
                   }));
}

/// What is there now, and a pipe's room at most: one that floods it must not hold up the loop.
void FileTimer::read() {
  constexpr int kMostPieces = 16;
  std::array<char, kMaxLine> room;
  for (int piece = 0; piece < kMostPieces; ++piece) {
    const auto got = posix::read_now(fifo_.descriptor(), room.data(), room.size());
    if (got.size == 0) break;
    hear({room.data(), got.size});
  }
}

void FileTimer::hear(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const auto part = bytes.substr(0, end);
    is_too_long_ = is_too_long_ || line_.size() + part.size() > kMaxLine;
    if (!is_too_long_) line_ += part;
    if (end == std::string_view::npos) return;
    if (is_too_long_) {
      complain("it is too long");
    } else {
      hear_line(line_);
    }
    line_.clear();
    is_too_long_ = false;
    bytes.remove_prefix(end + 1);
  }
}

void FileTimer::hear_line(std::string_view line) {
  const auto request = parse_timer_request(line);
  if (!request) {
    complain(request.error().message);
  } else if (!timers_.take(wall_now(), *request)) {
    complain("there are " + std::to_string(FileTimers::kMaxTimers) + " timers already");
  }
}

void FileTimer::complain(std::string_view why) {
  if (has_complained_) return;
  has_complained_ = true;
  logger_.warn("a request to the file timer is ignored: {}; others may follow", printable(why));
}

void FileTimer::arm() {
  const auto deadline = timers_.next_deadline();
  if (!deadline) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(*deadline);
  timer_.async_wait(life_.guard([this](const boost::system::error_code& error) {
    if (error) return;
    read();  // What was released in time may wait in the pipe still.
    for (const auto& expired : timers_.expire(wall_now())) on_expired_(expired);
    arm();
  }));
}

void FileTimer::forget(int pid) {
  read();
  timers_.forget(pid);
  arm();
}

void FileTimer::clear() {
  read();
  timers_.clear();
  arm();
}

}  // namespace muster::agent

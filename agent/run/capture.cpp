#include "agent/run/capture.hpp"

#include "base/posix/stream.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace muster::agent {
namespace asio = boost::asio;
namespace {

/// Whether a worker's write may not end where the bytes that we read end: the pipe may have been
/// full (a write of up to 4 KiB is never torn), or the worker writes whenever a buffer is full.
bool is_likely_cut(std::size_t size) {
  constexpr std::size_t kFullPipe = 16 * 1024;  // With pages that are not full.
  constexpr std::size_t kBuffer = 4096;
  return size >= kFullPipe || size % kBuffer == 0;
}

}  // namespace

Capture::Capture(asio::io_context& loop, posix::Fd reader, CaptureSinks sinks)
    : sinks_(std::move(sinks)), in_(loop), timer_(loop) {
  posix::set_non_blocking(reader.get());
  in_.assign(reader.release());
  wait();
}

void Capture::wait() {
  if (sinks_.console != nullptr && sinks_.console->congested()) {
    sinks_.console->when_clear(life_.guard([this] { wait(); }));
    return;
  }
  in_.async_wait(asio::posix::stream_descriptor::wait_read,
                 life_.guard([this](const boost::system::error_code& error) {
                   if (error == asio::error::operation_aborted) return;
                   // One piece a turn, so that a worker that floods its stream doesn't starve the
                   // others.
                   read_once();
                   if (!ended_) wait();
                 }));
}

/// False when nothing more is there for now.
bool Capture::read_once() {
  static std::array<char, 64 * 1024> buffer;  // Loop thread only, and empty between two calls.
  if (ended_) return false;
  const auto got = posix::read_now(in_.native_handle(), buffer.data(), buffer.size());
  ended_ = got.end;
  if (got.size == 0) return false;
  take({buffer.data(), got.size});
  return true;
}

void Capture::drain() {
  // A pipe holds 1 MiB at most; more than this comes from somebody who is still writing.
  constexpr int kMostReads = 32;
  for (int reads = 0; reads < kMostReads && read_once(); ++reads) {
  }
}

void Capture::finish() {
  drain();
  cutter_.finish([this](const Line& line) { take_line(line); });
  flush_lines();
}

void Capture::take(std::string_view bytes) {
  if (sinks_.keep_tail) tail_.add(bytes);
  if (sinks_.file) sinks_.file->write(bytes);
  if (sinks_.lines) {
    const bool was_unfinished = cutter_.unfinished().has_value();
    const auto ended_lines = ended_lines_;
    cutter_.add(bytes, [this](const Line& line) { take_line(line); });
    flush_lines();
    const bool rest_follows = is_likely_cut(bytes.size());
    if (!was_unfinished || ended_lines != ended_lines_ || rest_follows)
      show_at_ = std::chrono::steady_clock::now() + (rest_follows ? kRestPatience : kShowAfter);
    arm_timer();
  } else if (sinks_.console != nullptr) {
    sinks_.console->write(bytes);
  }
}

void Capture::take_line(const Line& line) {
  ++ended_lines_;
  sinks_.lines->take(line);
  if (sinks_.copies) sinks_.copies->take(line);
}

void Capture::flush_lines() {
  if (sinks_.lines) sinks_.lines->flush();
  if (sinks_.copies) sinks_.copies->flush();
}

void Capture::arm_timer() {
  const auto line = cutter_.unfinished();
  if (timer_is_armed_ || !line || !sinks_.lines->shows_unfinished(*line)) return;
  timer_is_armed_ = true;
  timer_.expires_at(show_at_);
  timer_.async_wait(life_.guard([this](const boost::system::error_code& error) {
    timer_is_armed_ = false;
    if (!error) on_timer();
  }));
}

/// Shows the unfinished line, unless it is a younger one, or its end is there and waits for us.
void Capture::on_timer() {
  const auto now = std::chrono::steady_clock::now();
  if (sinks_.console->congested() || read_once()) show_at_ = std::max(show_at_, now + kShowAfter);
  if (now < show_at_) return arm_timer();
  const auto line = cutter_.unfinished();
  if (!line || !sinks_.lines->shows_unfinished(*line)) return;
  sinks_.lines->take(*line);
  sinks_.lines->flush();
  cutter_.mark_shown();
}

}  // namespace muster::agent

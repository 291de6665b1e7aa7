#include "agent/run/capture.hpp"

#include "base/posix/stream.hpp"

#include <array>
#include <utility>

namespace muster::agent {
namespace asio = boost::asio;

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
    cutter_.add(bytes, [this](const Line& line) { take_line(line); });
    flush_lines();
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
  timer_.expires_after(kShowAfter);
  timer_.async_wait(
      life_.guard([this, begun = ended_lines_](const boost::system::error_code& error) {
        timer_is_armed_ = false;
        if (!error) on_timer(begun);
      }));
}

/// Shows the unfinished line, unless it is a younger one, or its end is there and waits for us.
void Capture::on_timer(std::uint64_t ended_lines) {
  const bool is_held_up = sinks_.console->congested() || read_once();
  const auto line = cutter_.unfinished();
  if (is_held_up || ended_lines != ended_lines_ || !line) return arm_timer();
  sinks_.lines->take(*line);
  sinks_.lines->flush();
  cutter_.mark_shown();
}

}  // namespace muster::agent

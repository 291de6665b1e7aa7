#pragma once

#include "agent/core/line_cutter.hpp"
#include "agent/core/line_tail.hpp"
#include "agent/run/console.hpp"
#include "agent/run/life.hpp"
#include "agent/run/line_sink.hpp"
#include "agent/run/log_file.hpp"
#include "base/posix/fd.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

namespace muster::agent {

/// Where one stream of one worker goes when it passes through the agent.
struct CaptureSinks {
  Console* console = nullptr;        ///< nullptr: not shown.
  std::unique_ptr<LineSink> lines;   ///< Onto the console; none: the bytes as they come, at once.
  std::unique_ptr<LineSink> copies;  ///< Of lines that are shown; may be none.
  std::optional<LogFile> file;       ///< Gets the bytes as they are.
  bool keep_tail = false;            ///< Remember the last lines.
};

/// Reads one stream of one worker from a pipe and carries it on. An unfinished line of which no
/// more comes is shown as its sink wants it, once it is kShowAfter old; where its rest is likely to
/// be on its way, it may take kRestPatience. Loop thread only.
class Capture {
 public:
  static constexpr Duration kShowAfter = std::chrono::milliseconds(50);
  static constexpr Duration kRestPatience = std::chrono::seconds(1);

  Capture(boost::asio::io_context& loop, posix::Fd reader, CaptureSinks sinks);

  /// Takes what the pipe holds now, without waiting for more: a grandchild may keep it open for
  /// ever.
  void drain();
  /// drain, and what is left of an unfinished line.
  void finish();
  [[nodiscard]] const LineTail& tail() const { return tail_; }

 private:
  void wait();
  bool read_once();
  void take(std::string_view bytes);
  void take_line(const Line& line);
  void flush_lines();
  void on_timer();
  void arm_timer();

  CaptureSinks sinks_;
  LineTail tail_;
  LineCutter cutter_;
  bool ended_ = false;
  bool timer_is_armed_ = false;
  std::uint64_t ended_lines_ = 0;
  TimePoint show_at_;  // The unfinished line.
  boost::asio::posix::stream_descriptor in_;
  boost::asio::steady_timer timer_;
  Life life_;
};

}  // namespace muster::agent

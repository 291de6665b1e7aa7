#pragma once

#include "agent/core/line_tail.hpp"
#include "agent/run/console.hpp"
#include "agent/run/life.hpp"
#include "base/posix/fd.hpp"

#include <array>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

namespace muster::agent {

/// Where one stream of one worker goes when it passes through the agent.
struct CaptureSinks {
  Console* console = nullptr;  ///< nullptr: not shown.
  std::optional<std::string>
      prefix;      ///< Before each line on the console; nullopt: the bytes as they come, at once.
  posix::Fd file;  ///< Gets the bytes as they are; none: no file.
  std::string file_name;
  bool keep_tail = false;  ///< Remember the last lines.
};

/// Reads one stream of one worker from a pipe and carries it on. With a
/// prefix only whole lines are shown, so that lines of different workers never mix; a line of more
/// than kLineLimit bytes is shown in pieces. Loop thread only.
class Capture {
 public:
  static constexpr std::size_t kLineLimit = 64 * 1024;

  Capture(boost::asio::io_context& loop, posix::Fd reader, CaptureSinks sinks, Logger& logger);

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
  void show_lines(std::string_view bytes);
  void append_line(std::string& shown, std::string_view line) const;

  Logger& logger_;
  CaptureSinks sinks_;
  LineTail tail_;
  std::string open_line_;
  bool ended_ = false;
  boost::asio::posix::stream_descriptor in_;
  Life life_;
};

}  // namespace muster::agent

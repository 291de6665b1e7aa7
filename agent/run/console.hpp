#pragma once

#include "agent/core/open_line.hpp"
#include "agent/run/life.hpp"
#include "base/ids.hpp"
#include "base/log/log.hpp"
#include "base/posix/epoll.hpp"
#include "base/posix/fd.hpp"
#include "base/posix/stream.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

namespace muster::agent {

/// One of the launcher's own streams, written without ever holding up the loop, and without making
/// the open file non-blocking: it belongs to the user's shell as well. (So Asio may not watch it
/// itself: it would set the flag. It watches an epoll set in which the stream is.) A reader that is
/// slow holds up the workers that print (as it would if they wrote themselves) and nothing else;
/// one that has gone, or a full disk, costs the output and one warning, never the training. Loop
/// thread only.
class Console {
 public:
  /// What may wait to be written before those who print are held up.
  static constexpr std::size_t kQueueLimit = 256 * 1024;

  /// What a pipe should hold, where it is one: with its usual size each write of ours would have to
  /// wait for the reader.
  static constexpr std::size_t kPipeSize = 256 * 1024;

  /// Writes to a duplicate of `fd`. `name` is for the warning: "stdout".
  Console(boost::asio::io_context& loop, int fd, std::string name, Logger& logger);

  /// Bytes as they are; a line that a stream has not ended is ended first.
  void write(std::string_view bytes);
  /// What open_line() made of lines.
  void write_lines(std::string_view bytes);
  [[nodiscard]] OpenLine& open_line() { return open_line_; }
  [[nodiscard]] bool congested() const { return queued_ > kQueueLimit; }
  /// Called once, when the console is no longer congested.
  void when_clear(std::function<void()> then) { waiting_.push_back(std::move(then)); }
  /// Writes what is queued, blocking for at most `patience`. For the end.
  void flush(Duration patience);

 private:
  std::size_t write_now(std::string_view bytes);
  bool write_some();
  void wait_until_writable();
  void drop(const std::string& why);

  std::string name_;
  Logger& logger_;
  posix::Fd out_;
  posix::Unblocking how_;
  std::unique_ptr<posix::EpollSet> room_;  // Made when we first have to wait.
  boost::asio::posix::stream_descriptor room_wait_;
  std::deque<std::string> queue_;
  std::size_t front_written_ = 0;
  std::size_t queued_ = 0;
  bool waiting_for_room_ = false;
  bool lost_ = false;
  OpenLine open_line_;
  std::vector<std::function<void()>> waiting_;
  Life life_;
};

}  // namespace muster::agent

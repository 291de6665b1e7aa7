#pragma once

#include "agent/core/file_timers.hpp"
#include "agent/run/life.hpp"
#include "base/log/log.hpp"
#include "base/posix/fifo.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/system_timer.hpp>

namespace muster::agent {

/// The server of PyTorch's file timer: workers write requests into a named pipe, and what expires
/// is told. Lines that make no sense are ignored, and said once. Loop thread only.
class FileTimer {
 public:
  using OnExpired = std::function<void(const FileTimers::Expired&)>;

  /// Makes the pipe. `loop` and `logger` outlive it.
  [[nodiscard]] static Result<std::unique_ptr<FileTimer>> create(boost::asio::io_context& loop,
                                                                 const std::string& path,
                                                                 OnExpired on_expired,
                                                                 Logger& logger);

  /// A process has ended: its timers are gone. What it wrote before has been heard then.
  void forget(int pid);
  /// The round is over.
  void clear();

 private:
  FileTimer(boost::asio::io_context& loop, posix::Fifo fifo, OnExpired on_expired, Logger& logger);
  void watch();
  void read();
  void hear(std::string_view bytes);
  void hear_line(std::string_view line);
  void complain(std::string_view why);
  void arm();

  posix::Fifo fifo_;
  boost::asio::posix::stream_descriptor wait_;  // A duplicate of the pipe.
  boost::asio::system_timer timer_;             // The clock that workers name, set or not.
  OnExpired on_expired_;
  Logger& logger_;
  FileTimers timers_;
  std::string line_;  // That has no end yet.
  bool is_too_long_ = false;
  bool has_complained_ = false;
  Life life_;
};

}  // namespace muster::agent

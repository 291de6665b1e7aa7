#pragma once

#include "agent/run/streams.hpp"
#include "base/posix/process.hpp"

#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

namespace muster::agent {

/// A worker of the running round.
struct Worker {
  explicit Worker(boost::asio::io_context& loop) : watch(loop) {}

  std::optional<posix::Process> process;
  boost::asio::posix::stream_descriptor watch;  ///< A duplicate of its pidfd.
  WorkerStreams streams;
  posix::Fd input;  ///< Its descriptor 0, until it was started; none: ours.
  std::string error_file;
  std::string expired_timer;  ///< In words; empty: none of its has expired.
  bool is_overdue = false;    ///< One of the main process itself has: its end is a failure.
};

}  // namespace muster::agent

#pragma once

#include "agent/run/life.hpp"
#include "base/ids.hpp"
#include "base/log/log.hpp"
#include "base/posix/fd.hpp"
#include "base/posix/process.hpp"
#include "base/posix/signals.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

namespace muster::agent {

/// Asks a command of the user's, again and again, whether this machine will be taken away
/// (`--preempt-command`). It is run by /bin/sh; an exit code of 0 is the notice, the first line of
/// its output the reason. Loop thread only.
///
/// The command is a child of the agent like a worker, so whoever reaps tells us of its end, and
/// whoever waits for the tree to be empty pauses us first.
class PreemptWatch {
 public:
  /// From the start of one run to that of the next.
  static constexpr Duration kInterval = std::chrono::seconds(5);
  /// A run that takes longer is killed, with a warning, and says nothing.
  static constexpr Duration kPatience = std::chrono::seconds(15);
  static constexpr std::size_t kLongestReason = 256;  ///< In bytes; the rest is cut off.

  struct Settings {
    std::string command;
    std::vector<std::string> environment;  ///< NAME=value.
    posix::SignalSettings signals;
    Duration interval = kInterval;
  };

  /// Begins at once. `on_notice` is called from the loop, once.
  PreemptWatch(boost::asio::io_context& loop, Settings settings,
               std::function<void(const std::string& reason)> on_notice, Logger& logger);

  /// The command's process while it runs.
  [[nodiscard]] std::optional<int> pid() const;
  /// It has ended and was not reaped.
  void ended();
  /// Kills a run that is under way; none begins until `resume`.
  void pause();
  void resume();

 private:
  void run();
  void run_later();
  void read_on();
  bool read_some();
  void kill();

  boost::asio::io_context& loop_;
  Settings settings_;
  std::function<void(const std::string&)> on_notice_;
  Logger& logger_;
  boost::asio::steady_timer next_;
  boost::asio::steady_timer patience_;
  std::optional<posix::Process> process_;
  std::optional<boost::asio::posix::stream_descriptor> output_;
  std::string reason_;
  bool is_paused_ = false;
  bool has_notice_ = false;
  std::string trouble_;  // As said last.
  Life life_;
};

}  // namespace muster::agent

#pragma once

#include "agent/run/life.hpp"
#include "base/ids.hpp"

#include <chrono>
#include <functional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

namespace muster::agent {

/// Tells when the process that started the launcher has ended (`--die-with-parent`). A parent-death
/// signal would not do: it comes when the thread that forked ends, and a program may use one for
/// that alone. Loop thread only.
class ParentWatch {
 public:
  /// Where the kernel has no pidfds (before 5.3) it is looked for this often.
  static constexpr Duration kLookInterval = std::chrono::seconds(1);

  /// To be made in a child of the launcher's first process, whose parent was `parent`. `on_end` is
  /// called once, from the loop; also where that parent has ended before.
  ParentWatch(boost::asio::io_context& loop, int parent, std::function<void()> on_end);

 private:
  void look();

  int keeper_;
  int parent_;
  std::function<void()> on_end_;
  boost::asio::posix::stream_descriptor ended_;
  boost::asio::steady_timer timer_;
  Life life_;
};

}  // namespace muster::agent

#pragma once

#include "base/ids.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace muster::agent {

/// By the clock that workers name: that of the machine.
using WallTime = std::chrono::sys_time<std::chrono::microseconds>;

/// What a worker asks of the file timer.
struct TimerRequest {
  int pid = 0;  ///< Its own, or that of a process of its.
  std::string scope;
  std::optional<WallTime> expires;  ///< nullopt: the timer is released.
  int signal = 0;                   ///< On expiry; 0: none, it is only told.
};

/// The timers that workers have set (torch.distributed.elastic.timer), one for each process and
/// scope. A timer that is set again counts from the newest request.
///
/// Pure: the same calls give the same answers.
class FileTimers {
 public:
  static constexpr std::size_t kMaxTimers = 4096;

  /// False: there are kMaxTimers already, and the request is refused.
  [[nodiscard]] bool take(WallTime now, const TimerRequest& request);

  struct Expired {
    int pid = 0;
    std::string scope;
    Duration after{};  ///< From the request on.
    int signal = 0;
  };
  /// Those that have expired by now, the earliest first; they are gone then. Of a process that gets
  /// a signal for one of them the others are gone as well.
  [[nodiscard]] std::vector<Expired> expire(WallTime now);

  /// nullopt: none is set.
  [[nodiscard]] std::optional<WallTime> next_deadline() const;

  /// A process has ended.
  void forget(int pid);
  void clear() { timers_.clear(); }
  [[nodiscard]] std::size_t size() const { return timers_.size(); }

 private:
  struct Timer {
    WallTime expires;
    Duration after;
    int signal;
  };
  using Name = std::pair<int, std::string>;  // Process and scope.
  std::map<Name, Timer> timers_;
};

}  // namespace muster::agent

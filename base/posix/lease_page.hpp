#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/posix/fd.hpp"

#include <atomic>
#include <cstdint>
#include <optional>

namespace muster::posix {

/// One page of memory that keeper and agent share (protocol.md 3): until when this node's workers
/// may run, in nanoseconds of CLOCK_BOOTTIME. A worker's process reads it between fork and exec and
/// exits when that time is over, so that no worker starts behind the back of a keeper that has
/// already swept the tree; nor does one before the agent has written its first lease. Mapped before
/// the keeper forks the agent; any thread.
class LeasePage {
 public:
  static constexpr std::int64_t kNone = 0;  ///< No lease yet, or never again: nothing may start.
  static constexpr std::int64_t kNever =
      INT64_MAX;  ///< A job that can have one node only has no lease.

  /// Without a lease.
  [[nodiscard]] static Result<LeasePage> create();
  LeasePage(LeasePage&& other) noexcept;
  LeasePage& operator=(LeasePage&&) = delete;
  ~LeasePage();

  /// Workers may run until then, by the boot clock. An instant that is past ends the lease.
  void renew(TimePoint ends) const noexcept;
  /// The job has no lease.
  void renew_for_ever() const noexcept;
  /// No worker may start any more.
  void end() const noexcept;

  /// nullopt: there is none that could end.
  [[nodiscard]] std::optional<TimePoint> lease_ends() const noexcept;
  [[nodiscard]] const std::atomic<std::int64_t>& ends() const noexcept { return *ends_; }

  /// Readable when the page names an instant that whoever waits for what it said before would miss:
  /// it ends sooner, or there was no running lease. `heed` makes it quiet again.
  [[nodiscard]] int changed() const noexcept { return changed_.get(); }
  void heed() const noexcept;

 private:
  LeasePage(std::atomic<std::int64_t>* ends, Fd changed)
      : ends_(ends), changed_(std::move(changed)) {}

  std::atomic<std::int64_t>* ends_;
  Fd changed_;  // An eventfd.
};

}  // namespace muster::posix

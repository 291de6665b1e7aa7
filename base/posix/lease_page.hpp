#pragma once

#include "base/error.hpp"

#include <atomic>
#include <cstdint>

namespace muster::posix {

/// One page of memory that keeper and agent share (protocol.md 3): until when this node's workers
/// may run, in nanoseconds of CLOCK_BOOTTIME. A worker's process reads it between fork and exec and
/// exits when that time is over, so that no worker starts behind the back of a keeper that has
/// already swept the tree. Mapped before the keeper forks the agent; any thread.
class LeasePage {
 public:
  static constexpr std::int64_t kNever =
      INT64_MAX;  ///< A job that can have one node only has no lease.

  [[nodiscard]] static Result<LeasePage> create();
  LeasePage(LeasePage&& other) noexcept;
  LeasePage& operator=(LeasePage&&) = delete;
  ~LeasePage();

  /// No worker may start any more.
  void end() const noexcept { ends_->store(0, std::memory_order_seq_cst); }
  [[nodiscard]] const std::atomic<std::int64_t>& ends() const noexcept { return *ends_; }

 private:
  explicit LeasePage(std::atomic<std::int64_t>* ends) : ends_(ends) {}
  std::atomic<std::int64_t>* ends_;
};

}  // namespace muster::posix

#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace muster::bench {

[[nodiscard]] TimePoint monotonic_now();

/// Processor time that a process has used, in nanoseconds, for a server that has nothing to do any
/// more: the kernel adds a running thread's time up at its ticks only, so this gives the server a
/// moment to fall asleep. Fails if there is no such process.
[[nodiscard]] Result<Duration> cpu_at_rest(pid_t pid);

[[nodiscard]] Duration own_cpu();

/// One number of a process's /proc status file, in KiB: VmRSS, VmHWM. Fails if the process or the
/// line is not there.
[[nodiscard]] Result<std::uint64_t> status_kib(pid_t pid, const std::string& line);

/// Raises the soft limit of open files to the hard one and fails if `wanted` descriptors do not
/// fit.
[[nodiscard]] Result<void> reserve_descriptors(std::uint64_t wanted);

/// The value below which `part` (0 to 1) of the samples lie; 0 if there are none. Reorders them.
[[nodiscard]] std::uint32_t quantile(std::vector<std::uint32_t>& samples, double part);

/// One flat JSON object, written as it is put together. Names are ours and need no escapes.
class Record {
 public:
  Record& add(const std::string& name, double value);
  Record& add(const std::string& name, std::uint64_t value);
  Record& add(const std::string& name, const std::vector<double>& values);
  [[nodiscard]] std::string text() const { return "{" + fields_ + "}"; }

 private:
  void begin(const std::string& name);
  std::string fields_;
};

[[nodiscard]] double to_ms(Duration duration);

}  // namespace muster::bench

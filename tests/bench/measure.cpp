#include "tests/bench/measure.hpp"

#include "base/posix/fd.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <sys/resource.h>
#include <thread>
#include <time.h>

namespace muster::bench {
namespace {

/// From the last reply to the server's sleep it takes microseconds; other load on the machine may
/// stretch that.
constexpr std::chrono::milliseconds kFallAsleep{3};

Duration read_clock(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

}  // namespace

TimePoint monotonic_now() { return TimePoint(read_clock(CLOCK_MONOTONIC)); }

Result<Duration> cpu_at_rest(pid_t pid) {
  std::this_thread::sleep_for(kFallAsleep);
  clockid_t clock{};
  if (const int error = ::clock_getcpuclockid(pid, &clock); error != 0) {
    return pass(posix::errno_error(error, "CPU clock of process " + std::to_string(pid)));
  }
  return read_clock(clock);
}

Duration own_cpu() { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

Result<std::uint64_t> status_kib(pid_t pid, const std::string& line) {
  const std::string path = "/proc/" + std::to_string(pid) + "/status";
  std::ifstream file(path);
  std::string name;
  while (file >> name) {
    if (std::uint64_t kib = 0; name == line + ":" && file >> kib) return kib;
    file.ignore(1 << 16, '\n');
  }
  return fail(Errc::NotFound, "read " + path + ": no line " + line);
}

Result<void> reserve_descriptors(std::uint64_t wanted) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (wanted <= limit.rlim_max) return {};
  return fail(Errc::Unavailable, "open " + std::to_string(wanted) +
                                     " descriptors: the hard limit (ulimit -Hn) is " +
                                     std::to_string(limit.rlim_max));
}

std::uint32_t quantile(std::vector<std::uint32_t>& samples, double part) {
  if (samples.empty()) return 0;
  const auto last = static_cast<double>(samples.size() - 1);
  const auto at = samples.begin() + std::lround(part * last);
  std::nth_element(samples.begin(), at, samples.end());
  return *at;
}

void Record::begin(const std::string& name) {
  if (!fields_.empty()) fields_ += ", ";
  fields_ += '"' + name + "\": ";
}

Record& Record::add(const std::string& name, double value) {
  begin(name);
  fields_ += number(value);
  return *this;
}

Record& Record::add(const std::string& name, std::uint64_t value) {
  begin(name);
  fields_ += std::to_string(value);
  return *this;
}

Record& Record::add(const std::string& name, const std::vector<double>& values) {
  begin(name);
  fields_ += '[';
  for (std::size_t i = 0; i < values.size(); ++i)
    fields_ += (i == 0 ? "" : ", ") + number(values[i]);
  fields_ += ']';
  return *this;
}

double to_ms(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace muster::bench

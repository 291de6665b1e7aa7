/// Any bytes into the file timer's pipe: lines that make no sense are refused, and what is taken
/// expires in order, once.

#include "agent/core/file_timers.hpp"
#include "agent/run/timer_request.hpp"
#include "base/assert.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace muster;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  agent::FileTimers timers;
  agent::WallTime now{std::chrono::seconds(1'700'000'000)};
  while (!bytes.empty()) {
    const auto line = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(line.size() + 1, bytes.size()));
    const auto request = agent::parse_timer_request(line);
    if (!request) {
      MUSTER_ASSERT(!request.error().message.empty());
      continue;
    }
    MUSTER_ASSERT(request->pid > 0 && request->signal >= 0);
    MUSTER_ASSERT(timers.take(now, *request));  // No input has lines for more than there may be.
    now += std::chrono::seconds(1);
  }
  while (const auto deadline = timers.next_deadline()) {
    const auto before = timers.size();
    const auto expired = timers.expire(*deadline);
    MUSTER_ASSERT(!expired.empty() && timers.size() < before);
    MUSTER_ASSERT(!timers.next_deadline() || *timers.next_deadline() > *deadline);
  }
  return 0;
}

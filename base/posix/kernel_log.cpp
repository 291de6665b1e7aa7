#include "base/posix/kernel_log.hpp"

#include <cerrno>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace muster::posix {

Fd open_kernel_log() {
  Fd log(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (log) ::lseek(log.get(), 0, SEEK_END);
  return log;
}

std::string read_kernel_log(const Fd& log) {
  constexpr std::size_t kRecordLimit = 8192;  // The kernel's own.
  std::string text;
  char record[kRecordLimit];
  while (log) {
    const auto size = ::read(log.get(), record, sizeof record);
    if (size < 0 && errno == EPIPE)
      continue;  // Some were overwritten before we came: go on with the next.
    if (size <= 0) return text;
    std::string_view line(
        record, static_cast<std::size_t>(size));  // `6,1234,99887766,-;the message\n more`
    if (const auto stamp_end = line.find(';'); stamp_end != std::string_view::npos)
      line.remove_prefix(stamp_end + 1);
    text += line.substr(0, line.find('\n'));
    text += '\n';
  }
  return text;
}

bool has_first_pid_space() {
  // The first namespace's inode is fixed (PROC_PID_INIT_INO).
  constexpr std::string_view kFirst = "pid:[4026531836]";
  char link[64];
  const auto size = ::readlink("/proc/self/ns/pid", link, sizeof link);
  return size > 0 && std::string_view(link, static_cast<std::size_t>(size)) == kFirst;
}

}  // namespace muster::posix

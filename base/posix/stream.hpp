#pragma once

#include "base/ids.hpp"
#include "base/posix/fd.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::posix {

[[nodiscard]] bool is_terminal(int fd);

/// How much may be written to a blocking descriptor that poll calls writable without blocking: all
/// to a file, PIPE_BUF to a pipe, little to a terminal.
[[nodiscard]] std::size_t unblocking_piece(int fd);

struct Written {
  std::size_t written = 0;  ///< 0 and no error: it would block.
  int error = 0;            ///< errno.
};

/// Writes at most a piece (unblocking_piece) if poll says that there is room. Needs SIGPIPE
/// ignored.
[[nodiscard]] Written write_unblocking(int fd, std::string_view piece);

/// Waits for room; false when there is none within `patience`.
[[nodiscard]] bool wait_writable(int fd, Duration patience);

/// What a non-blocking descriptor has to read now, up to `buffer`'s size. 0 bytes and no error:
/// nothing for now, unless `end`.
struct ReadNow {
  std::size_t size = 0;
  bool end = false;
};
[[nodiscard]] ReadNow read_now(int fd, char* buffer, std::size_t capacity);

/// Writes all of it to a regular file; the errno of the first failure, 0: none.
[[nodiscard]] int write_file(int fd, std::string_view bytes);

/// Opens for appending, creating it; close-on-exec.
[[nodiscard]] Result<Fd> open_log_file(const std::string& path);

[[nodiscard]] Result<Fd> open_null();

/// The last `limit` bytes of a file; empty where it can't be read.
[[nodiscard]] std::string file_tail(const std::string& path, std::size_t limit);

void set_non_blocking(int fd);

/// Opens /dev/null on those of 0, 1 and 2 that are closed, so that no later descriptor takes their
/// number.
void ensure_standard_descriptors();

}  // namespace muster::posix

#pragma once

#include "base/ids.hpp"
#include "base/posix/fd.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::posix {

[[nodiscard]] bool is_terminal(int fd);

/// Whether both are one terminal, pipe or file.
[[nodiscard]] bool is_same_file(int one, int other);

struct Written {
  std::size_t written = 0;  ///< 0 and no error: it would block.
  int error = 0;            ///< errno.
};

/// Writes to a descriptor that is in blocking mode, and stays in it, without blocking. Needs
/// SIGPIPE ignored.
class Unblocking {
 public:
  /// `fd` tells what kind of file it is; later ones are duplicates of it.
  explicit Unblocking(int fd);

  /// As much of `bytes` as there is room for.
  [[nodiscard]] Written write(int fd, std::string_view bytes);

 private:
  Written write_piece(int fd, std::string_view bytes) const;

  std::size_t piece_;  // What can be written without blocking where poll says that there is room.
  bool has_nowait_ = true;  // The kernel can write without blocking to such a file (RWF_NOWAIT):
                            // not tried yet, or it can.
};

/// Waits for room; false when there is none within `patience`.
[[nodiscard]] bool wait_writable(int fd, Duration patience);

/// How long whoever should read our last words may take; after that the exit code goes first.
constexpr Duration kReadPatience = std::chrono::seconds(5);

/// Writes all of it to one of our own streams; false when nobody took it within `patience`, or it
/// is broken.
[[nodiscard]] bool write_within(int fd, std::string_view bytes, Duration patience);

/// What a non-blocking descriptor has to read now, up to `buffer`'s size. 0 bytes and no error:
/// nothing for now, unless `end`.
struct ReadNow {
  std::size_t size = 0;
  bool end = false;
};
[[nodiscard]] ReadNow read_now(int fd, char* buffer, std::size_t capacity);

/// As read_now, of a descriptor that is in blocking mode and stays in it; wait until it is
/// readable.
[[nodiscard]] ReadNow read_shared(int fd, char* buffer, std::size_t capacity);

/// Writes all of it to a regular file; the errno of the first failure, 0: none.
[[nodiscard]] int write_file(int fd, std::string_view bytes);

/// Opens for appending, creating it; close-on-exec.
[[nodiscard]] Result<Fd> open_log_file(const std::string& path);

[[nodiscard]] Result<Fd> open_null();

/// The last `limit` bytes of a regular file; empty where there is none or it can't be read.
[[nodiscard]] std::string file_tail(const std::string& path, std::size_t limit);

void set_non_blocking(int fd);

/// Makes a pipe hold at least so much. Where the system's limits forbid it, or the file is no pipe,
/// it stays as it is.
void enlarge_pipe(int fd, std::size_t size);

}  // namespace muster::posix

#pragma once

#include "base/error.hpp"
#include "base/log/log.hpp"
#include "base/posix/fd.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::agent {

/// When a log file that passes through us is put aside for a new one.
struct Rotation {
  std::uint64_t max_size = 0;  ///< In bytes; 0: never.
  std::uint32_t keep = 5;      ///< Of the older ones: `stdout.log.1` is the newest of them.
};

/// A file that gets a worker's output from us. It is put aside at the end of a line, before it
/// would exceed the limit by a line that is there as a whole; one that comes in parts is cut when
/// it has no end within kLineRoom. Trouble with the disk costs the rest of the log and one warning,
/// never the worker. Loop thread only.
class LogFile {
 public:
  static constexpr std::size_t kLineRoom = 64 * 1024;

  [[nodiscard]] static Result<LogFile> open(std::string path, Rotation rotation, Logger& logger);

  void write(std::string_view bytes);

 private:
  LogFile(posix::Fd fd, std::string path, Rotation rotation, Logger& logger)
      : fd_(std::move(fd)), path_(std::move(path)), rotation_(rotation), logger_(logger) {}

  void append(std::string_view bytes);
  std::size_t fitting(std::string_view bytes) const;
  void rotate();

  posix::Fd fd_;  // None: given up.
  std::string path_;
  Rotation rotation_;
  Logger& logger_;
  std::uint64_t size_ = 0;
  bool ends_line_ = true;
};

}  // namespace muster::agent

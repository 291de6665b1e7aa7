#include "agent/run/log_file.hpp"

#include "base/posix/stream.hpp"

#include <filesystem>
#include <system_error>

namespace muster::agent {
namespace fs = std::filesystem;

Result<LogFile> LogFile::open(std::string path, Rotation rotation, Logger& logger) {
  auto fd = posix::open_log_file(path);
  if (!fd) return pass(fd.error());
  return LogFile(std::move(*fd), std::move(path), rotation, logger);
}

void LogFile::write(std::string_view bytes) {
  while (fd_ && rotation_.max_size > 0 && size_ + bytes.size() > rotation_.max_size) {
    const auto part = fitting(bytes);
    append(bytes.substr(0, part));
    bytes.remove_prefix(part);
    const bool waits_for_line_end = bytes.empty() && !ends_line_;
    if (waits_for_line_end && size_ < rotation_.max_size + kLineRoom) return;
    if (fd_) rotate();
  }
  append(bytes);
}

/// How much of these bytes, which are too many, still goes into this file: to the last end of a
/// line that fits, or else of the line that is unfinished.
std::size_t LogFile::fitting(std::string_view bytes) const {
  const auto room = rotation_.max_size - std::min(size_, rotation_.max_size);
  const auto last = room == 0 ? bytes.npos : bytes.rfind('\n', room - 1);
  if (last != bytes.npos) return last + 1;
  if (ends_line_ && size_ > 0) return 0;
  const auto longest = rotation_.max_size + kLineRoom - size_;
  const auto end = bytes.substr(0, longest).find('\n');
  return end == bytes.npos ? std::min<std::size_t>(bytes.size(), longest) : end + 1;
}

void LogFile::append(std::string_view bytes) {
  if (!fd_ || bytes.empty()) return;
  if (const int error = posix::write_file(fd_.get(), bytes); error != 0) {
    logger_.warn("log lost: {} can't be written any more ({}); the worker goes on", path_,
                 posix::errno_text(error));
    fd_.reset();
  }
  size_ += bytes.size();
  ends_line_ = bytes.ends_with('\n');
}

void LogFile::rotate() {
  const auto piece = [this](std::uint32_t number) { return path_ + "." + std::to_string(number); };
  std::error_code error, absent;
  for (auto number = rotation_.keep; number > 1 && !error; --number) {
    if (fs::exists(piece(number - 1), absent)) fs::rename(piece(number - 1), piece(number), error);
  }
  if (!error && rotation_.keep > 0) {
    fs::rename(path_, piece(1), error);
  } else if (!error) {
    fs::remove(path_, error);
  }
  auto next = error ? pass(posix::errno_error(error.value(), "put aside " + path_))
                    : posix::open_log_file(path_);
  if (!next) {
    logger_.warn("{}; it grows on", next.error().message);
    rotation_.max_size = 0;
    return;
  }
  fd_ = std::move(*next);
  size_ = 0;
  ends_line_ = true;
}

}  // namespace muster::agent

#include "agent/run/capture.hpp"

#include "base/posix/stream.hpp"

#include <algorithm>
#include <utility>

namespace muster::agent {
namespace asio = boost::asio;

Capture::Capture(asio::io_context& loop, posix::Fd reader, CaptureSinks sinks, Logger& logger)
    : logger_(logger), sinks_(std::move(sinks)), in_(loop) {
  posix::set_non_blocking(reader.get());
  in_.assign(reader.release());
  wait();
}

void Capture::wait() {
  if (sinks_.console != nullptr && sinks_.console->congested()) {
    sinks_.console->when_clear(life_.guard([this] { wait(); }));
    return;
  }
  in_.async_wait(asio::posix::stream_descriptor::wait_read,
                 life_.guard([this](const boost::system::error_code& error) {
                   if (error == asio::error::operation_aborted) return;
                   // One piece a turn, so that a worker that floods its stream doesn't starve the
                   // others.
                   read_once();
                   if (!ended_) wait();
                 }));
}

/// False when nothing more is there for now.
bool Capture::read_once() {
  static std::array<char, 64 * 1024> buffer;  // Loop thread only, and empty between two calls.
  if (ended_) return false;
  const auto got = posix::read_now(in_.native_handle(), buffer.data(), buffer.size());
  ended_ = got.end;
  if (got.size == 0) return false;
  take({buffer.data(), got.size});
  return true;
}

void Capture::drain() {
  // A pipe holds 1 MiB at most; more than this comes from somebody who is still writing.
  constexpr int kMostReads = 32;
  for (int reads = 0; reads < kMostReads && read_once(); ++reads) {
  }
}

void Capture::finish() {
  drain();
  if (!open_line_.empty()) show_lines("\n");
}

void Capture::take(std::string_view bytes) {
  if (sinks_.keep_tail) tail_.add(bytes);
  if (sinks_.file) {
    if (const int error = posix::write_file(sinks_.file.get(), bytes); error != 0) {
      logger_.warn("log lost: {} can't be written any more ({}); the worker goes on",
                   sinks_.file_name, posix::errno_text(error));
      sinks_.file.reset();
    }
  }
  if (sinks_.console == nullptr) return;
  if (sinks_.prefix) {
    show_lines(bytes);
  } else {
    sinks_.console->write(std::string(bytes));
  }
}

/// Shows the lines that these bytes complete, in one write.
void Capture::show_lines(std::string_view bytes) {
  std::string shown;
  shown.reserve(bytes.size() + bytes.size() / 4);
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const auto piece = bytes.substr(0, end);
    if (end != std::string_view::npos && open_line_.empty() && piece.size() <= kLineLimit) {
      append_line(shown, piece);
    } else {
      open_line_.append(piece);
      while (open_line_.size() > kLineLimit) {
        append_line(shown, std::string_view(open_line_).substr(0, kLineLimit));
        open_line_.erase(0, kLineLimit);
      }
      if (end == std::string_view::npos) break;
      append_line(shown, open_line_);
      open_line_.clear();
    }
    bytes.remove_prefix(end + 1);
  }
  sinks_.console->write(std::move(shown));
}

void Capture::append_line(std::string& shown, std::string_view line) const {
  shown += *sinks_.prefix;
  shown += line;
  shown += '\n';
}

}  // namespace muster::agent

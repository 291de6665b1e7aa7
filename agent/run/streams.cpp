#include "agent/run/streams.hpp"

#include "base/posix/stream.hpp"

#include <utility>

namespace muster::agent {
namespace {

/// How much of a worker's stderr file is read for its last lines.
constexpr std::size_t kFileTail = 64 * 1024;

}  // namespace

Result<WorkerStreams> WorkerStreams::open(boost::asio::io_context& loop, Output& output,
                                          std::uint32_t worker, const StreamPlan& out,
                                          const StreamPlan& err, const std::string& folder) {
  WorkerStreams streams;
  const auto file = [&folder](const StreamPlan& plan, const char* name) {
    return plan.file && !folder.empty() ? folder + name : std::string();
  };
  const auto out_fd =
      streams.open_one(loop, output, Output::Stream::Out, worker, out, file(out, "stdout.log"));
  if (!out_fd) return pass(out_fd.error());
  streams.out_fd_ = *out_fd;
  streams.err_file_ = file(err, "stderr.log");
  const auto err_fd =
      streams.open_one(loop, output, Output::Stream::Err, worker, err, streams.err_file_);
  if (!err_fd) return pass(err_fd.error());
  streams.err_fd_ = *err_fd;
  return streams;
}

/// The descriptor that the worker gets.
Result<int> WorkerStreams::open_one(boost::asio::io_context& loop, Output& output,
                                    Output::Stream stream, std::uint32_t worker,
                                    const StreamPlan& plan, const std::string& file_name) {
  const bool is_err = stream == Output::Stream::Err;
  auto* const console = plan.console ? output.console(stream, worker) : nullptr;
  const bool has_file = !file_name.empty();
  // A file alone needs no copy by us, unless we are to put it aside when it is large.
  if (has_file && console == nullptr && output.rotation().max_size == 0) {
    auto file = posix::open_log_file(file_name);
    if (!file) return pass(file.error());
    return keep(std::move(*file));
  }
  // Neither does our own stream where nothing is to be read on the way.
  if (console != nullptr && !plan.by_line && !has_file && output.can_be_handed_over(stream))
    return is_err ? 2 : 1;
  if (console == nullptr && !has_file && !is_err) {
    auto null = posix::open_null();
    if (!null) return pass(null.error());
    return keep(std::move(*null));
  }

  CaptureSinks sinks;
  sinks.console = console;
  if (console != nullptr && plan.by_line) {
    sinks.lines = output.lines(stream, worker);
    sinks.copies = output.copies(stream, worker);
  }
  if (has_file) {
    auto file = LogFile::open(file_name, output.rotation(), output.logger());
    if (!file) return pass(file.error());
    sinks.file.emplace(std::move(*file));
  }
  sinks.keep_tail = is_err;
  auto pipe = posix::make_pipe();
  if (!pipe) return pass(pipe.error());
  (is_err ? err_ : out_) =
      std::make_unique<Capture>(loop, std::move(pipe->reader), std::move(sinks));
  return keep(std::move(pipe->writer));
}

int WorkerStreams::keep(posix::Fd fd) {
  child_ends_.push_back(std::move(fd));
  return child_ends_.back().get();
}

void WorkerStreams::drain() {
  if (out_) out_->drain();
  if (err_) err_->drain();
}

void WorkerStreams::finish() {
  if (out_) out_->finish();
  if (err_) err_->finish();
}

std::vector<std::string> WorkerStreams::last_err_lines() const {
  if (err_) return err_->tail().lines();
  if (err_file_.empty()) return {};
  LineTail tail;
  tail.add(posix::file_tail(err_file_, kFileTail));
  return tail.lines();
}

}  // namespace muster::agent

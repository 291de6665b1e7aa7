#include "agent/run/streams.hpp"

#include "base/posix/stream.hpp"

#include <utility>

namespace muster::agent {
namespace {

/// How much of a worker's stderr file is read for its last lines.
constexpr std::size_t kFileTail = 64 * 1024;

}  // namespace

Result<WorkerStreams> WorkerStreams::open(const StreamContext& context, const StreamPlan& out,
                                          const StreamPlan& err, const std::string& folder,
                                          const std::string& prefix) {
  WorkerStreams streams;
  const auto file = [&folder](const StreamPlan& plan, const char* name) {
    return plan.file && !folder.empty() ? folder + name : std::string();
  };
  const auto out_fd = streams.open_one(context, out, false, file(out, "stdout.log"), prefix);
  if (!out_fd) return pass(out_fd.error());
  streams.out_fd_ = *out_fd;
  streams.err_file_ = file(err, "stderr.log");
  const auto err_fd = streams.open_one(context, err, true, streams.err_file_, prefix);
  if (!err_fd) return pass(err_fd.error());
  streams.err_fd_ = *err_fd;
  return streams;
}

/// The descriptor that the worker gets.
Result<int> WorkerStreams::open_one(const StreamContext& context, const StreamPlan& plan,
                                    bool is_err, const std::string& file_name,
                                    const std::string& prefix) {
  posix::Fd file;
  if (!file_name.empty()) {
    auto opened = posix::open_log_file(file_name);
    if (!opened) return pass(opened.error());
    file = std::move(*opened);
  }
  // A file alone needs no copy by us, and neither does our own stream where nothing is to be read
  // on the way.
  if (file && !plan.console) return keep(std::move(file));
  if (plan.console && !plan.prefixed && !file && (!is_err || context.err_is_terminal))
    return is_err ? 2 : 1;
  if (!plan.console && !is_err) {
    auto null = posix::open_null();
    if (!null) return pass(null.error());
    return keep(std::move(*null));
  }

  auto pipe = posix::make_pipe();
  if (!pipe) return pass(pipe.error());
  CaptureSinks sinks;
  if (plan.console) sinks.console = is_err ? &context.err : &context.out;
  if (plan.prefixed) sinks.prefix = prefix;
  sinks.file = std::move(file);
  sinks.file_name = file_name;
  sinks.keep_tail = is_err;
  (is_err ? err_ : out_) = std::make_unique<Capture>(context.loop, std::move(pipe->reader),
                                                     std::move(sinks), context.logger);
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

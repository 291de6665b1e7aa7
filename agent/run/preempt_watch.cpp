#include "agent/run/preempt_watch.hpp"

#include "base/posix/stream.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include <boost/asio/post.hpp>

namespace muster::agent {
namespace {

constexpr std::size_t kReadAtATime = 4096;

}  // namespace

PreemptWatch::PreemptWatch(boost::asio::io_context& loop, Settings settings,
                           std::function<void(const std::string&)> on_notice, Logger& logger)
    : loop_(loop),
      settings_(std::move(settings)),
      on_notice_(std::move(on_notice)),
      logger_(logger),
      next_(loop),
      patience_(loop) {
  next_.expires_after(Duration::zero());
  run_later();
}

std::optional<int> PreemptWatch::pid() const {
  if (!process_) return std::nullopt;
  return process_->pid();
}

void PreemptWatch::run_later() {
  next_.async_wait(life_.guard([this](const boost::system::error_code& error) {
    if (!error) run();
  }));
}

void PreemptWatch::run() {
  next_.expires_after(settings_.interval);
  run_later();
  if (process_ || is_paused_ || has_notice_) return;
  auto pipe = posix::make_pipe();
  auto null = posix::open_null();
  std::string trouble;
  if (!pipe) {
    trouble = pipe.error().message;
  } else if (!null) {
    trouble = null.error().message;
  } else {
    posix::Command command;
    command.path = "/bin/sh";
    command.argv = {"sh", "-c", settings_.command};
    command.environment = settings_.environment;
    command.in = null->get();
    command.out = pipe->writer.get();
    command.signals = settings_.signals;
    auto started = posix::Process::spawn(command);
    if (started) {
      process_ = std::move(*started);
      posix::set_non_blocking(pipe->reader.get());
      output_.emplace(loop_, pipe->reader.release());
      reason_.clear();
      read_on();
    } else {
      trouble = started.error().message;
    }
  }
  if (!trouble.empty()) {
    if (trouble != trouble_) logger_.warn("--preempt-command: {}", trouble);
    trouble_ = trouble;
    return;
  }
  patience_.expires_after(kPatience);
  patience_.async_wait(life_.guard([this](const boost::system::error_code& error) {
    if (error || !process_) return;
    logger_.warn("--preempt-command: killed: it took longer than {} s",
                 std::chrono::duration_cast<std::chrono::seconds>(kPatience).count());
    kill();
  }));
}

/// All of it, so that whoever writes much is not held up; its beginning is kept.
void PreemptWatch::read_on() {
  output_->async_wait(boost::asio::posix::stream_descriptor::wait_read,
                      life_.guard([this](const boost::system::error_code& error) {
                        if (!error && output_ && read_some()) read_on();
                      }));
}

/// False: there will be no more.
bool PreemptWatch::read_some() {
  std::array<char, kReadAtATime> buffer{};
  for (;;) {
    const auto got = posix::read_now(output_->native_handle(), buffer.data(), buffer.size());
    if (got.size == 0) return !got.end;
    const auto room = kLongestReason - std::min(kLongestReason, reason_.size());
    reason_.append(buffer.data(), std::min(got.size, room));
  }
}

void PreemptWatch::ended() {
  kill();  // What it left behind is no worker's. Before we reap: until then the group is its own.
  const auto status = process_->reap();
  if (!status) return;
  patience_.cancel();
  process_.reset();
  (void)read_some();
  output_.reset();
  if (!status->success() || has_notice_) return;
  has_notice_ = true;
  next_.cancel();
  reason_.resize(std::min(reason_.find('\n'), reason_.size()));
  on_notice_(reason_.empty() ? "--preempt-command" : reason_);
}

void PreemptWatch::pause() {
  is_paused_ = true;
  kill();
}

void PreemptWatch::resume() { is_paused_ = false; }

void PreemptWatch::kill() {
  if (process_) process_->signal_group(SIGKILL);
}

}  // namespace muster::agent

#include "agent/run/preempt_watch.hpp"

#include "base/posix/stream.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include <boost/asio/post.hpp>

namespace muster::agent {

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
      posix::set_non_blocking(
          pipe->reader.get());  // Who holds the other end may outlive the shell.
      output_ = std::move(pipe->reader);
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

void PreemptWatch::ended() {
  const auto status = process_->reap();
  if (!status) return;
  patience_.cancel();
  process_.reset();
  const auto output = std::exchange(output_, {});
  if (!status->success() || has_notice_) return;
  has_notice_ = true;
  next_.cancel();
  std::array<char, kLongestReason> buffer{};
  const auto got = posix::read_now(output.get(), buffer.data(), buffer.size());
  std::string reason(buffer.data(), got.size);
  reason.resize(std::min(reason.find('\n'), reason.size()));
  on_notice_(reason.empty() ? "--preempt-command" : reason);
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

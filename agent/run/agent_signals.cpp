// What the user's signals, and notices of preemption, mean to the agent.

#include "agent/run/agent.hpp"
#include "base/posix/boot_clock.hpp"
#include "base/posix/fork.hpp"
#include "base/posix/process_tree.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

namespace muster::agent {
namespace asio = boost::asio;
namespace {

/// Signals that end no process which does not ask for them.
bool means_nothing(int signal) {
  return signal == SIGCONT || signal == SIGURG || signal == SIGWINCH;
}

/// timeout(1) sends its signal to the launcher and, within a millisecond, to its group.
constexpr Duration kSameSignal = std::chrono::milliseconds(100);

std::string sender_text(const posix::ReceivedSignal& signal) {
  if (signal.from_terminal) return "the terminal";
  if (signal.sender == 0) return "the system";
  const auto name = posix::process_name(signal.sender);
  return "process " + std::to_string(signal.sender) + (name.empty() ? "" : " (" + name + ")");
}

}  // namespace

void Agent::watch_signals() {
  signal_wait_.async_wait(asio::posix::stream_descriptor::wait_read,
                          life_.guard([this](const boost::system::error_code& error) {
                            if (error) return;
                            while (const auto signal = signals_->next()) on_signal(*signal);
                            watch_signals();
                          }));
}

void Agent::on_signal(const posix::ReceivedSignal& signal) {
  if (signal.number == SIGCHLD) {
    reap();
    return;
  }
  if (settings_.stopping.forwarded.contains(signal.number)) {
    logger_.info("passing {} from {} on to the workers", signal_name(signal.number),
                 sender_text(signal));
    passed_on_.insert(signal.number);
    feed(WorkerGroup::SignalPassed{signal.number});
    return;
  }
  if (means_nothing(signal.number)) return;
  const auto now = posix::boot_now();
  if (signal.number == SIGTERM && settings_.preempt.sigterm_is_notice) {
    if (noticed_by_signal_ && now < *noticed_by_signal_ + kSameSignal) return;
    if (!has_notice_) {
      noticed_by_signal_ = now;
      notice(signal_name(signal.number) + " from " + sender_text(signal));
      last_signal_ = signal.number;
      feed(WorkerGroup::LauncherSignalled{});
      attendance_.report(Leaving{signal.number, true});  // So that the next one is the second.
      return;
    }
  }
  end_launcher(signal);
}

void Agent::end_launcher(const posix::ReceivedSignal& signal) {
  const bool has_workers =
      !is_stuck_ && std::any_of(workers_.begin(), workers_.end(),
                                [](const auto& worker) { return worker != nullptr; });
  const bool is_second = last_signal_ == SIGINT && signal.number == SIGINT && signal.from_terminal;
  if (is_second && has_workers) {
    logger_.warn("second Ctrl-C: killing the workers");
    feed(WorkerGroup::Hurried{});
    return;
  }
  logger_.warn("got {} from {}{}", signal_name(signal.number), sender_text(signal),
               last_signal_ == 0 || !has_workers ? "" : "; the workers are stopping already");
  last_signal_ = signal.number;
  feed(WorkerGroup::LauncherSignalled{});
  attendance_.report(Leaving{signal.number, has_notice_ && signal.number == SIGTERM});
}

/// As if it had told us to end.
void Agent::on_parents_end() {
  logger_.warn("the process that started this launcher has ended (--die-with-parent) pid={}",
               keeper_.parent);
  last_signal_ = SIGTERM;
  feed(WorkerGroup::LauncherSignalled{});
  attendance_.report(Leaving{SIGTERM, false});
}

/// This machine will be taken away. The rendezvous has the whole job save, and lets this node go.
void Agent::notice(const std::string& reason) {
  if (std::exchange(has_notice_, true)) return;
  logger_.warn("preemption notice: {}", printable(reason));
  attendance_.report(Notice{reason, settings_.preempt.left});
}

}  // namespace muster::agent

// The file timer of the agent's workers (torch.distributed.elastic.timer).

#include "agent/run/agent.hpp"
#include "base/exit_status.hpp"
#include "base/posix/process_tree.hpp"
#include "base/text.hpp"

#include <algorithm>

namespace muster::agent {
namespace {

std::string describe(const FileTimers::Expired& expired) {
  return fmt::format("the file timer '{}' of {:.1f} s expired", printable(expired.scope),
                     std::chrono::duration<double>(expired.after).count());
}

}  // namespace

Result<void> Agent::open_file_timer() {
  if (!settings_.timer_file) return {};
  auto path = *settings_.timer_file;
  if (path.empty()) {
    const auto folder = beacons_.folder();
    if (folder.empty()) {
      return fail(Errc::Unavailable,
                  "the file timer has no place for its pipe: name one in TORCHELASTIC_TIMER_FILE");
    }
    path = folder + "/timer";
  }
  auto timer = FileTimer::create(
      loop_, path, [this](const FileTimers::Expired& expired) { on_timer_expired(expired); },
      logger_);
  if (!timer)
    return fail(timer.error().code,
                "the file timer (TORCHELASTIC_TIMER_FILE): " + timer.error().message);
  file_timer_ = std::move(*timer);
  settings_.environment.timer_file = std::move(path);
  return {};
}

/// The process that set it gets its signal, and its worker's failure is its own from then on.
void Agent::on_timer_expired(const FileTimers::Expired& expired) {
  const auto text = describe(expired);
  const int child = posix::signal_descendant(expired.pid, 0);
  const auto worker = std::find_if(workers_.begin(), workers_.end(), [child](const auto& one) {
    return one && one->process->pid() == child && !one->process->ended();
  });
  if (worker == workers_.end()) {
    logger_.warn("{} pid={}: it is no process of a worker, and is left alone", text, expired.pid);
    return;
  }
  const auto rank = assignment_.rank_offset.value + (worker - workers_.begin());
  if (expired.signal == 0) {
    logger_.warn("{} rank={} pid={}", text, rank, expired.pid);
    return;
  }
  logger_.warn("{} rank={} pid={}: sending {}", text, rank, expired.pid,
               signal_name(expired.signal));
  (*worker)->expired_timer = text;
  (*worker)->is_overdue = (*worker)->is_overdue || expired.pid == child;
  (void)posix::signal_descendant(expired.pid, expired.signal);
}

}  // namespace muster::agent

// The flags that say how workers are ended.

#include "launcher/setter.hpp"
#include "launcher/surroundings/scheduler.hpp"
#include "launcher/text.hpp"
#include "launcher/values.hpp"

#include <algorithm>
#include <array>
#include <csignal>

namespace muster::launcher {
namespace {

constexpr std::string_view kTime = "seconds (30), or an integer with a unit (500ms, 30s, 5m, 1h)";
/// What schedulers leave a job by default, and those that do not say.
constexpr Duration kUsualKillAfter = std::chrono::seconds(30);
/// Kept for the verdict: one of so many parts of that time, and no more than the longest.
constexpr int kMarginShare = 6;
constexpr Duration kLongestMargin = std::chrono::seconds(5);
/// After a notice: so many parts for saving, and one to be stopped in.
constexpr int kSavingShare = 4;

Result<void> set_shutdown_timeout(Options& options, const Context& context) {
  const auto time = parse_time(context.given.value);
  if (!time) {
    return refuse(context.given, "a time", std::string(kTime) + ", at most a year");
  }
  options.stopping.shutdown_timeout = {*time, context.given.origin};
  return {};
}

Result<void> set_kill_after(Options& options, const Context& context) {
  const auto time = parse_time(context.given.value);
  if (!time || *time <= Duration::zero()) {
    return refuse(context.given, "a time above 0", kTime);
  }
  options.stopping.kill_after = *time;
  return {};
}

Result<void> set_drain_timeout(Options& options, const Context& context) {
  const auto time = parse_time(context.given.value);
  if (!time) return refuse(context.given, "a time", kTime);
  options.stopping.drain_timeout = *time;
  return {};
}

Result<void> set_success_skew(Options& options, const Context& context) {
  const auto time = parse_time(context.given.value);
  if (!time) return refuse(context.given, "a time", kTime);
  options.stopping.success_skew = *time;
  return {};
}

Result<void> set_signal_group(Options& options, const Context& context) {
  options.stopping.signal_group = context.given.value != "0";
  return {};
}

/// What no process can catch, what says that a process is at fault itself, and what job control and
/// the end of children are told by.
bool can_be_forwarded(int signal) {
  constexpr std::array kOthers{SIGKILL, SIGSTOP, SIGCHLD, SIGTSTP, SIGTTIN,
                               SIGTTOU, SIGPIPE, SIGXFSZ, SIGABRT, SIGBUS,
                               SIGFPE,  SIGILL,  SIGSEGV, SIGSYS,  SIGTRAP};
  return std::ranges::find(kOthers, signal) == kOthers.end();
}

Result<void> set_forward_signals(Options& options, const Context& context) {
  std::string_view rest = context.given.value;
  while (!rest.empty()) {
    const auto name = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    const auto signal = parse_signal(name);
    if (!signal || !can_be_forwarded(*signal)) {
      return fail(
          Errc::InvalidArgument,
          context.given.origin + ": " + in_quotes(std::string(name)) +
              " is not a signal that can be passed on: give names or numbers: HUP,SIGALRM,34");
    }
    options.stopping.forwarded.insert(*signal);
  }
  return {};
}

Result<void> set_die_with_parent(Options& options, const Context& context) {
  options.stopping.die_with_parent = context.given.value != "0";
  return {};
}

constexpr std::array kSetters{
    Setter{"shutdown-timeout", set_shutdown_timeout},
    Setter{"kill-after", set_kill_after},
    Setter{"drain-timeout", set_drain_timeout},
    Setter{"success-skew", set_success_skew},
    Setter{"signal-group", set_signal_group},
    Setter{"forward-signals", set_forward_signals},
    Setter{"die-with-parent", set_die_with_parent},
};

std::string text_of(Duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

/// The grace, within what is left after a signal.
void settle_grace(Options& options, Duration longest, std::string_view killer) {
  auto& stopping = options.stopping;
  const auto& asked = stopping.shutdown_timeout;
  if (!asked) {
    stopping.grace = longest;
  } else if (asked->value > longest) {
    options.notices.push_back(asked->origin + " " + text_of(asked->value) +
                              ": after a signal to muster the workers have " + text_of(longest) +
                              ", since " + std::string(killer) + " kills it after " +
                              text_of(*stopping.kill_after) + "; --kill-after tells another time");
  }
}

/// After SIGTERM as a notice the workers save first, and are stopped within the same time.
void settle_saving(Options& options, Duration longest, bool is_told, std::string_view killer) {
  const auto saving = longest * kSavingShare / (kSavingShare + 1);
  auto& preemption = options.preemption;
  const auto& asked = preemption.asked_deadline;
  if (!asked) {
    preemption.deadline = std::min(preemption.deadline, saving);
  } else if (!is_told) {  // Whoever knows how long the machine stays knows better than a default.
    *options.stopping.kill_after += asked->value;
  } else if (asked->value > saving) {
    preemption.deadline = saving;
    options.notices.push_back(
        asked->origin + " " + text_of(asked->value) + ": after SIGTERM the workers have " +
        text_of(saving) + " to save, since " + std::string(killer) + " kills muster after " +
        text_of(*options.stopping.kill_after) + "; --kill-after tells another time");
  }
}

}  // namespace

std::span<const Setter> stop_setters() { return kSetters; }

void settle_stopping(Options& options, const Environment& environment) {
  auto& stopping = options.stopping;
  const auto scheduler = scheduler_of(environment);
  stopping.sigterm_is_notice = options.preemption.is_asked_for || !scheduler.empty();
  if (stopping.shutdown_timeout) stopping.grace = stopping.shutdown_timeout->value;
  const bool is_told = stopping.kill_after.has_value();
  if (!is_told && !scheduler.empty()) stopping.kill_after = kUsualKillAfter;
  if (!stopping.kill_after) return;
  const auto killer = scheduler.empty() ? "whoever signals muster" : scheduler;
  stopping.kept_for_verdict = std::min(*stopping.kill_after / kMarginShare, kLongestMargin);
  const auto longest = *stopping.kill_after - stopping.kept_for_verdict;
  settle_grace(options, longest, killer);
  if (stopping.sigterm_is_notice) settle_saving(options, longest, is_told, killer);
}

}  // namespace muster::launcher

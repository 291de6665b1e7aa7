#include "rendezvous/core/settings.hpp"

#include "base/exit_status.hpp"

#include <utility>

namespace muster::rendezvous {
namespace {

using namespace std::chrono_literals;

std::string text(std::uint32_t value) { return std::to_string(value); }
std::string text(Duration value) { return duration_text(value); }
std::string text(bool value) { return value ? "yes" : "no"; }
std::string text(ScaleUp value) {
  switch (value) {
    case ScaleUp::Now:
      return "now";
    case ScaleUp::Checkpoint:
      return "checkpoint";
    case ScaleUp::Never:
      return "never";
  }
  return "?";
}
template <class T>
std::string text(const std::optional<T>& value) {
  return value ? text(*value) : "not set";
}
std::string signal_text(std::uint32_t signal) {
  return signal == 0 ? "not set" : signal_name(static_cast<int>(signal));
}
std::string nnodes(const JobSettings& settings) {
  auto words = text(settings.min_nodes);
  if (settings.max_nodes != settings.min_nodes || settings.node_step != 1)
    words += ":" + text(settings.max_nodes);
  if (settings.node_step != 1) words += ":" + text(settings.node_step);
  return words;
}

}  // namespace

std::string duration_text(Duration duration) {
  if (duration % 1s == 0s) return std::to_string(duration / 1s) + "s";
  if (duration > 1s && duration % 100ms == 0s)
    return std::to_string(duration / 1s) + "." + std::to_string(duration % 1s / 100ms) + "s";
  if (duration % 1ms == 0s) return std::to_string(duration / 1ms) + "ms";
  return std::to_string(duration.count()) + "ns";
}

std::vector<Difference> differences(const JobSettings& first, const JobSettings& second) {
  std::vector<Difference> found;
  const auto compare = [&found](const char* setting, std::string a, std::string b) {
    if (a != b) found.push_back({setting, std::move(a), std::move(b)});
  };
  compare("--nnodes", nnodes(first), nnodes(second));
  compare("--max-restarts", text(first.max_restarts), text(second.max_restarts));
  compare("--lease", text(first.lease), text(second.lease));
  compare("--rdzv-conf last_call_timeout", text(first.last_call), text(second.last_call));
  compare("--rdzv-conf join_timeout", text(first.join_timeout), text(second.join_timeout));
  compare("--prefer", text(first.prefer), text(second.prefer));
  compare("--scale-up", text(first.scale_up), text(second.scale_up));
  compare("--restart-backoff", text(first.restart_backoff), text(second.restart_backoff));
  compare("the workers' store on the endpoint's port", text(first.store_on_server),
          text(second.store_on_server));
  compare("--preempt-signal", signal_text(first.preempt_signal),
          signal_text(second.preempt_signal));
  compare("--preempt-deadline", text(first.preempt_deadline), text(second.preempt_deadline));
  compare("--max-restarts-without-progress", text(first.max_restarts_without_progress),
          text(second.max_restarts_without_progress));
  // What a newer node sets and we don't know: a node that does not set it differs as well.
  auto others = first.others;
  others.insert(second.others.begin(), second.others.end());
  const auto value_in = [](const JobSettings& settings, const std::string& name) {
    const auto at = settings.others.find(name);
    return at == settings.others.end() ? std::string("not set") : at->second;
  };
  for (const auto& [name, value] : others)
    compare(name.c_str(), value_in(first, name), value_in(second, name));
  return found;
}

std::optional<std::string> what_is_wrong(const JobSettings& settings, Duration max_lease) {
  if (const auto wrong = what_is_wrong(sizes_of(settings)))
    return "--nnodes " + nnodes(settings) + ": " + *wrong;
  if (settings.lease > max_lease)
    return "--lease " + text(settings.lease) + " is more than this server admits, " +
           text(max_lease) + " (its --max-lease)";
  if (settings.lease == 0s && settings.max_nodes > 1)
    return "--lease 0s is for a job that can have one node only, not for --nnodes " +
           nnodes(settings);
  if (settings.max_restarts_without_progress && *settings.max_restarts_without_progress < 2)
    return "--max-restarts-without-progress " + text(settings.max_restarts_without_progress) +
           ": at least 2, since there must be attempts to compare";
  return std::nullopt;
}

Sizes sizes_of(const JobSettings& settings) {
  return {settings.min_nodes, settings.max_nodes, settings.node_step};
}

}  // namespace muster::rendezvous

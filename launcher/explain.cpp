#include "launcher/explain.hpp"

#include "base/text.hpp"
#include "launcher/flags.hpp"
#include "launcher/relaunch.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace muster::launcher {
namespace {

constexpr std::string_view kByRendezvous = "<by the rendezvous>";
constexpr std::string_view kAtStart = "<made at the start>";

void add_row(std::string& text, std::string_view name, std::string_view value,
             std::string_view origin) {
  const auto line = fmt::format("  {:<30} {:<24} {}", name, printable(value), printable(origin));
  text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

/// `1` of a help that ends in `[1]`: what counts where nobody gives the flag.
std::string_view default_of(const Flag& flag) {
  if (flag.takes == Takes::Nothing) return "off";
  const auto open = flag.help.rfind('[');
  if (open == std::string_view::npos || !flag.help.ends_with(']')) return "-";
  return flag.help.substr(open + 1, flag.help.size() - open - 2);
}

std::string milliseconds(Duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) + "ms";
}

std::string endpoint_of(const Options& options) {
  return options.meeting ? to_string(options.meeting->server) : "none";
}

std::string rank_of(const Options& options) {
  if (!options.meeting) return "0";
  return options.node_rank ? std::to_string(options.node_rank->value) : std::string(kByRendezvous);
}

/// What flags that nobody gives come to, where that depends on others.
std::string resolved(std::string_view flag, const Options& options) {
  const auto& stopping = options.stopping;
  if (flag == "node-rank") return rank_of(options);
  if (flag == "rdzv-endpoint") return endpoint_of(options);
  if (flag == "rdzv-id") return options.rdzv_id.value_or("<a random one>");
  if (flag == "master-port")
    return options.master.port == 0 ? "<a free one>" : std::to_string(options.master.port);
  if (flag == "shutdown-timeout") return milliseconds(stopping.grace);
  if (flag == "kill-after")
    return stopping.kill_after ? milliseconds(*stopping.kill_after) : "never";
  return {};
}

std::string flags_of(const Options& options) {
  std::string text = "flags\n";
  for (const Flag& flag : flags()) {
    if (flag.takes == Takes::Over || flag.owner == Owner::NotYet) continue;
    const auto given = options.given.find(flag.name);
    if (given == options.given.end()) {
      const auto value = resolved(flag.name, options);
      add_row(text, flag.name, value.empty() ? default_of(flag) : value, "default");
      continue;
    }
    const auto& [value, origin] = given->second;
    const bool is_switch = flag.takes == Takes::Nothing;
    add_row(text, flag.name, is_switch ? (value == "0" ? "off" : "on") : value, origin);
  }
  return text;
}

template <class T>
void add_fact(std::string& text, std::string_view name, const std::optional<Told<T>>& fact) {
  if (fact) add_row(text, name, fmt::format("{}", fact->value), fact->origin);
}

std::string surroundings_of(const Surroundings& found) {
  std::string text = "surroundings\n";
  if (found.name.empty()) return text + "  none that muster knows\n";
  add_row(text, "started by", found.name, "");
  add_fact(text, "nodes", found.launchers);
  add_fact(text, "node rank", found.node_rank);
  add_fact(text, "first host", found.first_host);
  add_fact(text, "job", found.job_id);
  add_fact(text, "restarts", found.restarts);
  add_fact(text, "workers of this node", found.slots);
  add_fact(text, "devices", found.devices);
  add_fact(text, "place in the network", found.topology);
  add_fact(text, "processors", found.cpus);
  add_fact(text, "processors of the job", found.job_cpus);
  return text;
}

std::string sizes_of(const JobSettings& job) {
  if (job.min_nodes == job.max_nodes) return std::to_string(job.max_nodes);
  return fmt::format("{} to {}", job.min_nodes, job.max_nodes);
}

std::string job_of(const Options& options) {
  std::string text = "job\n";
  add_row(text, "id", options.rdzv_id.value_or("<a random one>"), "");
  if (!options.launch_tag.empty()) add_row(text, "launch tag", options.launch_tag, "");
  add_row(text, "nodes", sizes_of(options.job), "");
  if (options.meeting) {
    add_row(text, "node rank", rank_of(options), "");
    add_row(text, "nodes meet at", to_string(options.meeting->server), options.meeting->origin);
  } else {
    add_row(text, "nodes meet at", "nowhere: there is one", "");
  }
  add_row(text, "workers of this node", std::to_string(options.nproc), options.nproc_origin);
  add_row(text, "grace of a stop", milliseconds(options.stopping.grace), "");
  return text;
}

/// Values that only the start or the rendezvous decides, by variable.
std::map<std::string, std::string, std::less<>> unknown(const Options& options) {
  std::map<std::string, std::string, std::less<>> values;
  const auto leave_open = [&values](std::initializer_list<const char*> names) {
    for (const char* const name : names) values[name] = kByRendezvous;
  };
  if (!options.rdzv_id) values["TORCHELASTIC_RUN_ID"] = "<a random UUID>";
  if (options.keeps_files) values["TORCHELASTIC_ERROR_FILE"] = kAtStart;
  if (!options.meeting) {
    if (options.master.port == 0) values["MASTER_PORT"] = "<a free port>";
    return values;
  }
  if (!options.job.store_on_server) leave_open({"MASTER_ADDR", "MASTER_PORT"});
  const bool is_fixed = options.node_rank && options.job.min_nodes == options.job.max_nodes;
  if (!is_fixed) {
    leave_open(
        {"RANK", "WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE"});
  }
  // Others may be on this machine, and local ranks count on.
  if (!is_fixed || options.surroundings.launchers_here > 1)
    leave_open({"LOCAL_RANK", "LOCAL_WORLD_SIZE", "LOCAL_SIZE"});
  return values;
}

/// As the first round would be, if every node had as many workers as this one.
Assignment likely_assignment(const Options& options) {
  Assignment part;
  part.max_restarts = options.job.max_restarts;
  part.local_world_size = options.nproc;
  part.nodes = options.job.max_nodes;
  part.node_rank = options.node_rank.value_or(NodeRank{0});
  part.world_size = part.role_world_size = part.nodes * options.nproc;
  part.rank_offset = Rank{part.node_rank.value * options.nproc};
  part.role_rank_offset = part.rank_offset.value;
  part.master = options.meeting ? options.meeting->server : options.master;
  return part;
}

std::string workers_of(const Options& options, const Program& program,
                       agent::EnvironmentSettings settings) {
  settings.job_id = options.rdzv_id.value_or("");
  const auto unknown_values = unknown(options);
  const auto part = likely_assignment(options);
  agent::WorkerOwn own{.error_file = {},
                       .interface = options.meeting ? "<that of the route>" : "",
                       .beacon = std::string(kAtStart),
                       .python_folder = std::string(kAtStart)};
  const std::set<std::string> inherited(settings.base.begin(), settings.base.end());

  std::string text;
  for (std::uint32_t index = 0; index < options.nproc; ++index) {
    text += fmt::format("worker {}\n  {}\n", index,
                        printable(as_typed(worker_command(program, {index}).argv)));
    std::size_t others = 0;
    for (const auto& entry : agent::worker_environment(settings, part, index, own)) {
      if (inherited.contains(entry)) {
        ++others;
        continue;
      }
      const auto name = entry.substr(0, entry.find('='));
      const auto at = unknown_values.find(name);
      text +=
          "    " + printable(at == unknown_values.end() ? entry : name + "=" + at->second) + "\n";
    }
    text += fmt::format("    and {} variables as they are here\n", others);
  }
  return text;
}

std::string remarks_of(const Options& options) {
  std::string text;
  for (const auto* const remarks : {&options.warnings, &options.notices}) {
    for (const auto& remark : *remarks) text += "  " + printable(remark) + "\n";
  }
  return text.empty() ? text : "remarks\n" + text;
}

}  // namespace

std::string explanation(const Options& options, const Result<Program>& program,
                        const agent::EnvironmentSettings& workers) {
  std::string text = flags_of(options) + surroundings_of(options.surroundings);
  if (options.relaunch) {
    text += "start\n  " + as_typed(*options.relaunch) + " and this command line\n";
    return text + remarks_of(options);
  }
  text += job_of(options) + remarks_of(options);
  if (!program) return text + "program\n  none yet: " + printable(program.error().message) + "\n";
  text += "program\n  " + printable(program->path) + " (" + printable(program->why) + ")\n";
  return text + workers_of(options, *program, workers);
}

}  // namespace muster::launcher

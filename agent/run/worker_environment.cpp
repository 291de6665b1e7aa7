#include "agent/run/worker_environment.hpp"

#include <algorithm>
#include <string_view>

namespace muster::agent {
namespace {

std::string_view name_of(std::string_view entry) { return entry.substr(0, entry.find('=')); }

bool has(const std::vector<std::string>& environment, std::string_view name) {
  return std::any_of(environment.begin(), environment.end(),
                     [name](const std::string& entry) { return name_of(entry) == name; });
}

/// PYTHONPATH with our folder: behind the user's own, unless the start-up hook in it must be found.
std::string python_path(const EnvironmentSettings& settings, const std::string& folder) {
  constexpr std::string_view kName = "PYTHONPATH=";
  const auto own = std::find_if(settings.base.begin(), settings.base.end(),
                                [](const auto& entry) { return entry.starts_with(kName); });
  const auto paths = own == settings.base.end() ? std::string() : own->substr(kName.size());
  if (paths.empty()) return folder;
  return settings.tracks_steps ? folder + ":" + paths : paths + ":" + folder;
}

}  // namespace

std::vector<std::string> worker_environment(const EnvironmentSettings& settings,
                                            const Assignment& assignment, std::uint32_t index,
                                            const WorkerOwn& own) {
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  std::vector<std::pair<std::string_view, std::string>> ours = {
      {"RANK", number(assignment.rank_offset.value + index)},
      {"LOCAL_RANK", number(assignment.local_rank_offset.value + index)},
      {"WORLD_SIZE", number(assignment.world_size)},
      {"LOCAL_WORLD_SIZE", number(assignment.local_world_size)},
      {"LOCAL_SIZE",
       number(assignment.local_world_size)},  // DeepSpeed reads it; torchrun does not set it.
      {"GROUP_RANK", number(assignment.node_rank.value)},
      {"GROUP_WORLD_SIZE", number(assignment.nodes)},
      {"ROLE_NAME", settings.role},
      {"ROLE_RANK", number(assignment.role_rank_offset + index)},
      {"ROLE_WORLD_SIZE", number(assignment.role_world_size)},
      {"MASTER_ADDR", assignment.master.host},
      {"MASTER_PORT", number(assignment.master.port)},
      {"TORCHELASTIC_RESTART_COUNT", number(assignment.restarts)},
      {"TORCHELASTIC_MAX_RESTARTS", number(assignment.max_restarts)},
      {"TORCHELASTIC_RUN_ID", settings.job_id},
      {"TORCHELASTIC_USE_AGENT_STORE", settings.agent_hosts_store ? "True" : "False"},
      {"TORCHELASTIC_ERROR_FILE", own.error_file},
  };
  if (!own.beacon.empty()) ours.emplace_back("MUSTER_BEACON", own.beacon);
  if (!own.python_folder.empty())
    ours.emplace_back("PYTHONPATH", python_path(settings, own.python_folder));
  if (!settings.timer_file.empty())
    ours.emplace_back("TORCHELASTIC_TIMER_FILE", settings.timer_file);
  if (!has(settings.base, "TORCH_NCCL_ASYNC_ERROR_HANDLING")) {
    ours.emplace_back("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  }
  if (!settings.omp_num_threads.empty() && !has(settings.base, "OMP_NUM_THREADS")) {
    ours.emplace_back("OMP_NUM_THREADS", settings.omp_num_threads);
  }
  if (!own.interface.empty()) {
    if (!has(settings.base, "GLOO_SOCKET_IFNAME"))
      ours.emplace_back("GLOO_SOCKET_IFNAME", own.interface);
    if (settings.tells_nccl && !has(settings.base, "NCCL_SOCKET_IFNAME"))
      ours.emplace_back("NCCL_SOCKET_IFNAME", own.interface);
  }

  std::vector<std::string> environment;
  environment.reserve(settings.base.size() + ours.size());
  for (const auto& entry : settings.base) {
    const auto name = name_of(entry);
    const bool replaced = std::any_of(ours.begin(), ours.end(),
                                      [name](const auto& each) { return each.first == name; });
    if (!replaced) environment.push_back(entry);
  }
  for (const auto& [name, value] : ours) environment.push_back(std::string(name) + "=" + value);
  return environment;
}

}  // namespace muster::agent

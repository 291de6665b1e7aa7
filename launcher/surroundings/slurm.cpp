#include "launcher/surroundings/family.hpp"
#include "launcher/values.hpp"

#include <algorithm>

/// Slurm's variables: srun(1), "OUTPUT ENVIRONMENT VARIABLES", and sbatch(1) of 22.05 to 25.05.
namespace muster::launcher {
namespace {

constexpr std::string_view kStep = "SLURM_STEP_ID";
/// Numbers as long as this are names, as 4294967290 for salloc's shell: no step that srun has
/// started on every node.
constexpr std::size_t kDigitsOfNames = 10;

/// Whether srun has started us, and for this job: a batch script inherits the variables of the
/// shell in which sbatch was called, which may have been in a step. Its own ones differ from those
/// then, unless that step was of the same node and the same shape.
bool is_in_step(Reader& reader) {
  const auto step = reader.text(kStep);
  if (!step || step->value.size() >= kDigitsOfNames) return false;
  const auto tasks = reader.text("SLURM_TASKS_PER_NODE");
  const auto tasks_of_step = reader.text("SLURM_STEP_TASKS_PER_NODE");
  if (tasks && tasks_of_step && tasks->value != tasks_of_step->value) return false;
  const auto node = reader.text("SLURMD_NODENAME");
  const auto names = reader.node_list("SLURM_STEP_NODELIST");
  return !node || names.empty() || std::ranges::find(names, node->value) != names.end();
}

/// The leaf switch's path: `s0.s4.cn12` by the pattern `switch.switch.node`.
std::optional<Told<std::string>> topology_of(const Reader& reader) {
  auto address = reader.text("SLURM_TOPOLOGY_ADDR");
  if (!address) return std::nullopt;
  const auto dot = address->value.rfind('.');
  if (dot == std::string::npos) return std::nullopt;
  address->value.resize(dot);
  return address;
}

/// Of the job's, those on this node.
std::optional<Told<std::uint32_t>> job_cpus_here(Reader& reader) {
  constexpr std::string_view kCpus = "SLURM_JOB_CPUS_PER_NODE";
  const auto counts = reader.counts(kCpus);
  const auto names = reader.node_list("SLURM_JOB_NODELIST");
  const auto node = reader.text("SLURMD_NODENAME");
  if (!node || counts.size() != names.size()) return std::nullopt;
  const auto at = std::ranges::find(names, node->value) - names.begin();
  if (at == std::ssize(names)) return std::nullopt;
  return Told<std::uint32_t>{counts[static_cast<std::size_t>(at)], std::string(kCpus)};
}

/// Several steps of one job may meet at one node at once: ten thousand of them have ports of their
/// own, since the factor has no divisor in common with that number.
std::uint16_t port_of(std::uint32_t job, std::uint32_t step) {
  constexpr std::uint64_t kBetweenSteps = 3779;
  return static_cast<std::uint16_t>(kFirstPort + (job + kBetweenSteps * step) % kPorts);
}

/// On each node, of GPUs that were asked for by task: a step of fewer tasks gets fewer, unless it
/// asks for all. 0 where nodes differ.
std::uint32_t gpus_by_task(Reader& reader) {
  const auto told = reader.text("SLURM_GPUS_PER_TASK");  // `2`, or `a100:2`.
  const auto tasks = reader.counts("SLURM_TASKS_PER_NODE");
  if (!told || tasks.empty() || std::ranges::count(tasks, tasks.front()) != std::ssize(tasks))
    return 0;
  const auto each = parse_integer(told->value.substr(told->value.rfind(':') + 1)).value_or(0);
  constexpr std::int64_t kMost = 1024;  // On a node; more is no number of GPUs.
  return each > 0 && each * tasks.front() <= kMost
             ? static_cast<std::uint32_t>(each * tasks.front())
             : 0;
}

std::optional<Surroundings> outside_of_steps(Reader& reader, const std::string& job) {
  Surroundings found{.name = "Slurm", .whole = "Slurm's allocation"};
  auto nodes = reader.number("SLURM_JOB_NUM_NODES");
  if (!nodes) nodes = reader.number("SLURM_NNODES");
  if (nodes && nodes->value > 1) {
    const auto counts = reader.counts("SLURM_JOB_CPUS_PER_NODE");
    found.bare = {.job = job,
                  .nodes = nodes->value,
                  .cpus = counts.empty() ? 0 : *std::ranges::min_element(counts),
                  .gpus = gpus_by_task(reader)};
  }
  return found;
}

}  // namespace

std::optional<Surroundings> task_of_slurm(Reader& reader) {
  const auto job = reader.number("SLURM_JOB_ID");
  if (!job) return std::nullopt;
  const auto job_name = std::to_string(job->value);
  if (!is_in_step(reader)) return outside_of_steps(reader, job_name);

  Surroundings found{.name = "Slurm", .whole = "Slurm's step"};
  const auto names = reader.node_list("SLURM_STEP_NODELIST");
  found.machines = static_cast<std::uint32_t>(names.size());
  if (const auto nodes = reader.number("SLURM_STEP_NUM_NODES")) {
    if (!names.empty() && names.size() != nodes->value) {
      reader.wrong("SLURM_STEP_NODELIST has " + std::to_string(names.size()) + " nodes, but " +
                   nodes->origin + " says " + std::to_string(nodes->value));
    }
    found.machines = nodes->value;
    found.launchers = nodes;
  }
  if (const auto tasks = reader.number("SLURM_STEP_NUM_TASKS")) found.launchers = tasks;
  const auto node = reader.number("SLURM_NODEID");
  found.is_elsewhere = node && node->value > 0;
  if (found.launchers && found.launchers->value > found.machines) {
    const auto tasks = reader.counts("SLURM_STEP_TASKS_PER_NODE");
    if (node && node->value < tasks.size()) found.launchers_here = tasks[node->value];
    const auto local = reader.number("SLURM_LOCALID");
    found.is_first_here = !local || local->value == 0;
  } else {
    found.slots = reader.number("SLURM_GPUS_ON_NODE");
  }
  found.node_rank = reader.number("SLURM_PROCID");
  if (!names.empty()) found.first_host = {names.front(), "the first of SLURM_STEP_NODELIST"};

  const auto step = reader.number(kStep);
  if (step) {
    found.port = port_of(job->value, step->value);
    found.job_id = {job_name + "." + std::to_string(step->value), "SLURM_JOB_ID"};
    found.restarts = reader.number("SLURM_RESTART_COUNT");
    found.launch_tag =
        found.job_id->value + "." + std::to_string(found.restarts ? found.restarts->value : 0);
  }
  found.devices = reader.text("CUDA_VISIBLE_DEVICES");
  found.topology = topology_of(reader);
  found.cpus = reader.number("SLURM_CPUS_ON_NODE");
  found.job_cpus = job_cpus_here(reader);
  return found;
}

}  // namespace muster::launcher

#include "launcher/surroundings/family.hpp"

#include <algorithm>
#include <array>

/// Starters of processes that know nothing of ours: each `muster` that they start is an agent. They
/// say how many there are, but mostly not where.
namespace muster::launcher {
namespace {

struct Starter {
  std::string_view name;
  std::string_view sign;  ///< Set by this one only.
  std::string_view size;
  std::string_view rank;
  std::string_view local_size;
  std::string_view machines;
  std::string_view job;
};

/// jsrun is asked before Open MPI and PALS before MPICH: they set the variables of those as well.
/// Spectrum LSF's jsrun(1); HPE Cray PALS's mpiexec(1), whose PMI library has PMI_*; Open MPI's
/// mpirun(1), "Environment variables" (PRRTE's the same); MPICH's Hydra, "Environment"; Flux's
/// flux-environment(7).
constexpr std::array kStarters{
    Starter{"jsrun", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK",
            "JSM_NAMESPACE_LOCAL_SIZE", "", "PMIX_NAMESPACE"},
    Starter{"PALS", "PALS_RANKID", "PMI_SIZE", "PALS_RANKID", "PMI_LOCAL_SIZE", "", "PALS_APID"},
    Starter{"Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
            "OMPI_COMM_WORLD_LOCAL_SIZE", "", "PMIX_NAMESPACE"},
    Starter{"MPICH", "MPI_LOCALNRANKS", "PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "", ""},
    Starter{"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_RANK", "", "FLUX_JOB_NNODES",
            "FLUX_JOB_ID"},
};

/// Where the starter names its job not, or every job the same: the scheduler's around it.
constexpr std::array<std::string_view, 3> kJobs{"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"};

std::optional<Told<std::string>> job_of(const Reader& reader, const Starter& starter) {
  if (auto own = reader.text(starter.job)) return own;
  const auto found =
      std::ranges::find_if(kJobs, [&reader](auto variable) { return reader.has(variable); });
  return found == kJobs.end() ? std::nullopt : reader.text(*found);
}

}  // namespace

std::optional<Surroundings> process_of_mpi(Reader& reader) {
  const auto starter = std::ranges::find_if(
      kStarters, [&reader](const Starter& each) { return reader.has(each.sign); });
  if (starter == kStarters.end()) return std::nullopt;

  Surroundings found;
  found.name = starter->name;
  found.whole = found.name + "'s job";
  found.launchers = reader.number(starter->size);
  found.node_rank = reader.number(starter->rank);
  const auto machines = reader.number(starter->machines);
  const auto local = reader.number(starter->local_size);
  if (local) found.launchers_here = local->value;
  if (machines) found.machines = machines->value;
  const bool is_one = machines ? machines->value == 1
                               : local && found.launchers && local->value == found.launchers->value;
  if (is_one) {
    found.machines = 1;
    found.first_host = {"127.0.0.1", "one machine"};
  } else {
    found.first_host = reader.first_allocated_host();
  }
  found.job_id = job_of(reader, *starter);
  found.devices = reader.text("CUDA_VISIBLE_DEVICES");
  found.how_to_meet = found.name + " does not say on which machines: give --rdzv-endpoint HOST (" +
                      "one of them) and --rdzv-id ID, the same for all";
  return found;
}

}  // namespace muster::launcher

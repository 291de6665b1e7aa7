#include "launcher/surroundings/surroundings.hpp"

#include "launcher/surroundings/family.hpp"

#include <array>

namespace muster::launcher {
namespace {

/// Asked in this order: an mpirun may have started us within a step of Slurm's, and both within a
/// pod. The innermost says who we are.
constexpr std::array kFamilies{process_of_mpi, task_of_slurm, node_of_cluster, host_of_list,
                               pod_of_job};

}  // namespace

Result<Surroundings> surroundings_of(const Environment& environment, const ReadFile& read_file) {
  // A worker that starts a muster of its own: all that stands in its environment is the outer
  // job's.
  if (environment.contains("TORCHELASTIC_RUN_ID")) return Surroundings();
  Reader reader(environment, read_file);
  for (const auto family : kFamilies) {
    if (auto found = family(reader)) return reader.checked(*std::move(found));
  }
  return Surroundings();
}

std::uint16_t port_for(const std::string& job_id) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a: the same on every machine and version.
  for (const char c : job_id) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return static_cast<std::uint16_t>(kFirstPort + hash % kPorts);
}

}  // namespace muster::launcher

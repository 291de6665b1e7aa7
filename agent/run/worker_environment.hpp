#pragma once

#include "base/membership.hpp"

#include <string>
#include <vector>

namespace muster::agent {

/// What a worker's environment says beside its place in the round.
struct EnvironmentSettings {
  std::vector<std::string> base;  ///< NAME=value, the launcher's own.
  std::string job_id;
  std::string role = "default";
  bool agent_hosts_store = true;  ///< False: rank 0 hosts it (`--worker-store torch`).
  std::string timer_file;         ///< Where the file timer listens; empty: nowhere.
  std::string omp_num_threads;    ///< Set where the base has none; empty: leave it unset.
  bool tracks_steps = false;      ///< Its Python looks into the folder of WorkerOwn first.
  bool tells_nccl = false;  ///< NCCL is told the interface as well (`--iface`), not only Gloo.
};

/// What differs from worker to worker, or from round to round, and is no place in it.
struct WorkerOwn {
  std::string error_file;     ///< May be empty.
  std::string interface;      ///< Of the route between nodes; set where the base names none.
  std::string beacon;         ///< The file of its page; empty: it has none.
  std::string python_folder;  ///< In which Python finds the module; empty: there is none.
};

/// The environment of a worker: the base, with torchrun's names on top. They are wire format
/// (PyTorch and the libraries above it read them) and are spelled here and nowhere else;
/// docs/reference/environment.md lists them with every difference from torchrun. `index` counts the
/// node's workers.
[[nodiscard]] std::vector<std::string> worker_environment(const EnvironmentSettings& settings,
                                                          const Assignment& assignment,
                                                          std::uint32_t index,
                                                          const WorkerOwn& own);

}  // namespace muster::agent

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
  std::string omp_num_threads;    ///< Set where the base has none; empty: leave it unset.
};

/// The environment of a worker: the base, with torchrun's names on top. They are wire format
/// (PyTorch and the libraries above it read them) and are spelled here and nowhere else;
/// docs/reference/environment.md lists them with every difference from torchrun. `index` counts the
/// node's workers; `error_file` may be empty.
[[nodiscard]] std::vector<std::string> worker_environment(const EnvironmentSettings& settings,
                                                          const Assignment& assignment,
                                                          std::uint32_t index,
                                                          const std::string& error_file);

}  // namespace muster::agent

#include "launcher/surroundings/scheduler.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace muster::launcher {
namespace {

struct Sign {
  std::string_view variable;
  std::string_view scheduler;
};
/// One inside another (Slurm in a pod): the innermost is what signals us.
constexpr std::array kSigns{
    Sign{"SLURM_JOB_ID", "Slurm"},      Sign{"PBS_JOBID", "PBS"},
    Sign{"LSB_JOBID", "LSF"},           Sign{"FLUX_JOB_ID", "Flux"},
    Sign{"_CONDOR_JOB_AD", "HTCondor"}, Sign{"KUBERNETES_SERVICE_HOST", "Kubernetes"},
};

}  // namespace

std::string_view scheduler_of(const Environment& environment) {
  const auto found = std::ranges::find_if(kSigns, [&environment](const Sign& sign) {
    const auto at = environment.find(std::string(sign.variable));
    return at != environment.end() && !at->second.empty();
  });
  return found == kSigns.end() ? std::string_view() : found->scheduler;
}

}  // namespace muster::launcher

#include "launcher/relaunch.hpp"

#include <algorithm>
#include <array>

namespace muster::launcher {
namespace {

/// What srun takes from sbatch's flags by these variables: srun(1), "INPUT ENVIRONMENT VARIABLES".
/// By the last, launchers would lack what the script itself has set.
constexpr std::array<std::string_view, 7> kDropped{
    "SLURM_GPUS_PER_TASK",   "SLURM_TRES_PER_TASK",     "SLURM_NTASKS_PER_GPU",
    "SLURM_NTASKS_PER_TRES", "SLURM_NTASKS_PER_SOCKET", "SLURM_NTASKS_PER_CORE",
    "SLURM_EXPORT_ENV"};

/// That an interrupt is passed on at once, and not only when a second one follows within a second.
constexpr std::string_view kNoStatus = "SLURM_DISABLE_STATUS";

std::string_view name_of(std::string_view entry) { return entry.substr(0, entry.find('=')); }

bool is_plain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         std::string_view("-_=./:,+@%").find(c) != std::string_view::npos;
}

}  // namespace

std::vector<std::string> srun_words(const BareAllocation& allocation, std::uint32_t nodes) {
  const auto number = std::to_string(nodes);
  std::vector<std::string> words{"srun", "--nodes=" + number, "--ntasks=" + number,
                                 "--ntasks-per-node=1"};
  if (allocation.cpus > 0) words.push_back("--cpus-per-task=" + std::to_string(allocation.cpus));
  if (allocation.gpus > 0) words.push_back("--gpus-per-node=" + std::to_string(allocation.gpus));
  return words;
}

std::vector<std::string> srun_environment(std::vector<std::string> entries,
                                          const BareAllocation& allocation) {
  std::erase_if(entries, [](const std::string& entry) {
    const auto name = name_of(entry);
    return name == kRelaunchedVariable || name == kNoStatus ||
           std::ranges::find(kDropped, name) != kDropped.end();
  });
  entries.push_back(std::string(kNoStatus) + "=1");
  entries.push_back(std::string(kRelaunchedVariable) + "=" + allocation.job);
  return entries;
}

std::string as_typed(const std::vector<std::string>& words) {
  std::string line;
  for (const auto& word : words) {
    if (!line.empty()) line += ' ';
    if (!word.empty() && std::ranges::all_of(word, is_plain)) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

}  // namespace muster::launcher

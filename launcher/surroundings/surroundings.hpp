#pragma once

#include "base/error.hpp"
#include "launcher/environment.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// What whoever started us (Slurm, an mpirun, a pod's controller) says in the environment about the
/// job, so that nobody has to say it again in flags. Pure: variables in, facts out; which of them
/// count beside the flags is settled in settle_surroundings.hpp. docs/reference/surroundings.md has
/// the same tables for users.
namespace muster::launcher {

/// A fact, and where it stands: `SLURM_STEP_NUM_TASKS`.
template <class T>
struct Told {
  T value{};
  std::string origin;
};

/// The whole of a small file; the error says why it can't be read.
using ReadFile = std::function<Result<std::string>(const std::string& path)>;

/// Several machines that a scheduler has given us, on one of which we were started, alone.
struct BareAllocation {
  std::string job;
  std::uint32_t nodes = 0;
  std::uint32_t cpus = 0;  ///< On each of them, for the job; 0: unknown.
  std::uint32_t gpus = 0;  ///< Likewise, where they were asked for by task; 0: all that there are.
};

/// A launcher here is one `muster` process: an agent of the job.
struct Surroundings {
  std::string name;   ///< `Slurm`; empty: nothing that we know.
  std::string whole;  ///< What the launchers are counted of: `Slurm's step`.

  std::optional<Told<std::uint32_t>> launchers;  ///< That are started for the job, us included.
  std::uint32_t machines = 0;                    ///< On which they are; 0: unknown.
  std::uint32_t launchers_here = 1;              ///< On this machine.
  std::optional<Told<std::uint32_t>> node_rank;  ///< Ours among the launchers.
  bool is_first_here = true;                     ///< Of the launchers on this machine.
  std::optional<Told<std::string>> first_host;   ///< Where the launchers may meet.
  bool is_elsewhere = false;                     ///< That is another machine than this one.
  std::optional<std::uint16_t> port;             ///< To meet at; nullopt: one is made of `job_id`.
  bool is_static = false;   ///< The workers' store is at that endpoint as well.
  std::string how_to_meet;  ///< Without a host: what to give.
  std::optional<Told<std::string>> job_id;
  std::string launch_tag;                       ///< Empty: none.
  std::optional<Told<std::uint32_t>> slots;     ///< Workers of this launcher.
  std::optional<Told<std::string>> devices;     ///< That we may see.
  std::optional<Told<std::string>> topology;    ///< Where in the network this machine is.
  std::optional<Told<std::uint32_t>> restarts;  ///< Of the whole job, by the scheduler.
  std::optional<Told<std::uint32_t>> cpus;      ///< Of this machine, for what we belong to.
  std::optional<Told<std::uint32_t>> job_cpus;  ///< Of this machine, for the scheduler's job.
  std::optional<BareAllocation> bare;
  /// RANK, WORLD_SIZE and the like mean something else than a worker's place here: what they count.
  std::string counts;
};

/// The first family of starters that knows itself in the environment tells all. Fails on a variable
/// that makes no sense, named.
[[nodiscard]] Result<Surroundings> surroundings_of(const Environment& environment,
                                                   const ReadFile& read_file);

/// Where nodes meet that were told a host but no port: below the ports that kernels give out by
/// themselves.
constexpr std::uint16_t kFirstPort = 20000;
constexpr std::uint16_t kPorts = 10000;

/// One of those ports, the same for all who know the job's id.
[[nodiscard]] std::uint16_t port_for(const std::string& job_id);

}  // namespace muster::launcher

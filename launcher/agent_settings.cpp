#include "launcher/agent_settings.hpp"

#include "base/posix/folder.hpp"
#include "base/posix/limits.hpp"
#include "base/text.hpp"
#include "launcher/lookup.hpp"

#include <algorithm>
#include <utility>

namespace muster::launcher {
namespace {

bool any_rank(const Options& options, const StreamMap& map) {
  for (std::uint32_t rank = 0; rank < options.nproc; ++rank) {
    if (map.of({rank}) != Streams::None) return true;
  }
  return false;
}

agent::StreamPlan stream_plan(const Options& options, LocalRank rank, Streams stream) {
  const auto asked = [rank, stream](const StreamMap& map) {
    return (static_cast<unsigned>(map.of(rank)) & static_cast<unsigned>(stream)) != 0;
  };
  const bool tee = asked(options.tee);
  const bool redirect = asked(options.redirects);
  const auto& output = options.output;
  const auto& filter = output.local_ranks_filter;
  const bool shown = !filter || filter->contains(rank.value);
  const bool folds_all = output.fold && !any_rank(options, options.tee);
  return {.console = shown && (tee || !redirect),
          .by_line = tee || folds_all || output.log_format == LogFormat::Json,
          .file = tee || redirect};
}

/// Where the folder of the workers' beacons may be: in memory, rather than on a disk.
std::vector<std::string> beacon_roots(const Environment& environment) {
  std::vector<std::string> roots{"/dev/shm"};
  for (const char* const variable : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
    auto folder = value_of(environment, variable);
    if (folder && folder->starts_with('/')) roots.push_back(std::move(*folder));
  }
  roots.emplace_back("/tmp");
  return roots;
}

/// OMP_NUM_THREADS for each of several workers: our share of the processors.
std::string omp_share(const Options& options, const Environment& environment, Logger& logger) {
  if (options.nproc < 2 || environment.contains("OMP_NUM_THREADS")) return {};
  const auto cpus = posix::usable_cpus();
  const auto share = std::max(1U, cpus / options.nproc);
  logger.info("OMP_NUM_THREADS={} for each worker: {}, {} workers; set it to choose", share,
              count_of(cpus, "processor"), options.nproc);
  return std::to_string(share);
}

/// How many connections the store may hold so that the agent keeps the descriptors that it needs to
/// start and to end workers.
std::size_t store_connections(std::uint32_t workers) {
  constexpr std::size_t kOwnDescriptors = 48;
  constexpr std::size_t kForEachWorker =
      7;  // Two pidfds, a page, two pipes, both while it is spawned.
  constexpr std::size_t kFewest = 16;
  const auto kept = kOwnDescriptors + kForEachWorker * workers;
  const std::size_t limit = posix::open_file_limit();
  return std::max(limit > kept ? limit - kept : 0, kFewest);
}

/// When workers are killed, and given up, after a signal to us: before whoever sent it kills us.
std::optional<agent::WorkerGroup::LastDeadlines> last_deadlines(const Stopping& stopping) {
  if (!stopping.kill_after) return std::nullopt;
  constexpr int kShareOfTheLastWord = 5;
  const auto kept = stopping.kept_for_verdict;
  return agent::WorkerGroup::LastDeadlines{
      .kill = *stopping.kill_after - kept,
      .give_up = *stopping.kill_after - kept / kShareOfTheLastWord};
}

/// `${role_name}${local_rank}` of torchrun, unless the prefix stands for several workers.
std::string usual_prefix(const Options& options) {
  return options.output.fold ? "[${rank}]:" : "[${role_name}${local_rank}]:";
}

agent::OutputSettings output_settings(const Options& options) {
  const auto& output = options.output;
  agent::OutputSettings settings{.prefix = output.prefix.value_or(usual_prefix(options)),
                                 .role = options.role,
                                 .folds = output.fold,
                                 .json = nullptr,
                                 .ranks_filter = output.ranks_filter,
                                 .out_filters = output.stdout_filters,
                                 .err_filters = output.stderr_filters,
                                 .rotation = {.max_size = output.log_max_size}};
  if (output.log_keep) settings.rotation.keep = *output.log_keep;
  return settings;
}

agent::InputPlan input_plan(const StdinPlan& plan) {
  using To = agent::InputPlan::To;
  switch (plan.to) {
    case StdinPlan::To::Inherited:
      return {.to = To::Inherited, .rank = {}};
    case StdinPlan::To::All:
      return {.to = To::All, .rank = {}};
    case StdinPlan::To::One:
      return {.to = To::One, .rank = {plan.rank}};
    case StdinPlan::To::None:
      return {.to = To::None, .rank = {}};
  }
  return {};
}

}  // namespace

agent::AgentSettings agent_settings(const Options& options, const Program& program,
                                    const Environment& environment) {
  agent::AgentSettings settings;
  for (std::uint32_t rank = 0; rank < options.nproc; ++rank) {
    auto command = worker_command(program, {rank});
    settings.workers.push_back({.path = std::move(command.path),
                                .argv = std::move(command.argv),
                                .out = stream_plan(options, {rank}, Streams::Out),
                                .err = stream_plan(options, {rank}, Streams::Err)});
  }
  const auto& stopping = options.stopping;
  settings.stopping = {.grace = stopping.grace,
                       .drain = stopping.drain_timeout,
                       .last_deadlines = last_deadlines(stopping),
                       .success_skew = stopping.success_skew,
                       .signals_groups = stopping.signal_group,
                       .forwarded = stopping.forwarded,
                       .dies_with_parent = stopping.die_with_parent};
  settings.output = output_settings(options);
  settings.input = input_plan(options.output.input);
  settings.environment.role = options.role;
  settings.environment.agent_hosts_store = options.worker_store == WorkerStore::Agent;
  settings.environment.tells_nccl = options.iface == "auto";
  settings.store_allow = options.store_allow;
  if (options.port_range) {
    settings.store_ports = agent::PortRange{options.port_range->low, options.port_range->high};
  }
  settings.preempt = {.command = options.preemption.command,
                      .sigterm_is_notice = stopping.sigterm_is_notice,
                      .left = options.preemption.deadline,
                      .signal = options.preemption.signal};
  settings.error_files = options.keeps_files;
  if (value_of(environment, "TORCHELASTIC_ENABLE_FILE_TIMER") == "1")
    settings.timer_file = value_of(environment, "TORCHELASTIC_TIMER_FILE").value_or("");
  settings.environment.tracks_steps = options.track_steps;
  settings.beacons = {.roots = beacon_roots(environment), .tracks_steps = options.track_steps};
  return settings;
}

void share_machine(agent::AgentSettings& settings, const Options& options,
                   const Environment& environment, Logger& logger) {
  settings.environment.omp_num_threads = omp_share(options, environment, logger);
  settings.open_files = posix::raise_open_file_limit();
  auto& connections = settings.store_options.limits.connections;
  connections = std::min(connections, store_connections(options.nproc));
}

Result<std::optional<agent::LogFolder>> make_log_folder(const Options& options,
                                                        const Environment& environment,
                                                        const std::string& id) {
  std::string base;
  std::string name = folder_name(id) + "_" + folder_name(posix::short_host_name());
  if (options.log_dir) {
    base = *options.log_dir;
  } else if (any_rank(options, options.redirects)) {
    base = value_of(environment, "TMPDIR").value_or("/tmp");
    name = "muster_" + name;
  } else {
    return std::nullopt;
  }
  auto folder = agent::LogFolder::create(base, name);
  if (!folder) return pass(folder.error());
  return std::optional(std::move(*folder));
}

void announce_logs(const Options& options, const std::string& folder, Logger& logger) {
  const bool tees = any_rank(options, options.tee);
  if (folder.empty()) {
    if (tees) logger.info("--tee shows output on the console only; --log-dir keeps it in files");
  } else if (tees || any_rank(options, options.redirects)) {
    logger.info("worker logs in {}", folder);
  } else {
    logger.info("error files in {}; --redirects or --tee put the output there as well", folder);
  }
}

}  // namespace muster::launcher

// muster: runs one job on this machine. The process splits into keeper and agent first
// (agent/run/keeper.hpp); the agent reads the command line and builds everything.

#include "agent/run/agent.hpp"
#include "agent/run/keeper.hpp"
#include "base/posix/folder.hpp"
#include "base/posix/limits.hpp"
#include "base/posix/socket.hpp"
#include "base/posix/stream.hpp"
#include "base/posix/tcp_stream.hpp"
#include "launcher/closing_block.hpp"
#include "launcher/machine.hpp"
#include "launcher/options.hpp"
#include "launcher/program.hpp"
#include "rendezvous/server/solo_attendance.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <system_error>

#include <boost/asio/io_context.hpp>

extern char** environ;

namespace muster::launcher {
namespace {

constexpr int kOwnError = 1;
/// How long whoever should read what we say may take; after that the exit code goes first.
constexpr Duration kReadPatience = std::chrono::seconds(5);
/// An error of our own may be the keeper's death: then we should be gone soon.
constexpr Duration kErrorPatience = std::chrono::milliseconds(500);

int leave(const ExitNow& now) {
  const bool told = posix::write_within(1, now.out, kReadPatience);
  (void)posix::write_within(2, now.err, kReadPatience);
  return told ? now.code : kOwnError;
}

int own_error(const std::string& message) {
  (void)posix::write_within(2, "muster: error: " + message + "\n", kErrorPatience);
  return kOwnError;
}

Environment read_environment(std::vector<std::string>& entries) {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    entries.emplace_back(text);
    const auto equals = text.find('=');
    if (equals != std::string_view::npos)
      environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

/// A random id in the form of a UUID of version 4, as torchrun gives a standalone job.
std::string random_id() {
  std::random_device device;
  std::uint32_t words[4];
  for (auto& word : words) word = device();
  words[1] = (words[1] & 0xFFFF0FFFU) | 0x00004000U;
  words[2] = (words[2] & 0x3FFFFFFFU) | 0x80000000U;
  char text[37];
  std::snprintf(text, sizeof text, "%08x-%04x-%04x-%04x-%04x%08x", words[0], words[1] >> 16,
                words[1] & 0xFFFFU, words[2] >> 16, words[2] & 0xFFFFU, words[3]);
  return text;
}

/// Where the store is hosted, as a number: workers should need no name service. IPv4 before IPv6
/// where a name has both.
Result<Endpoint> numeric_address_of(const Endpoint& endpoint) {
  const auto addresses = posix::resolve(endpoint);
  if (!addresses) return pass(addresses.error());
  const auto v4 = std::find_if(addresses->begin(), addresses->end(),
                               [](const auto& address) { return address.family() == AF_INET; });
  return posix::to_endpoint(v4 == addresses->end() ? addresses->front() : *v4);
}

agent::StreamPlan stream_plan(const Options& options, LocalRank rank, Streams stream) {
  const auto asked = [rank, stream](const StreamMap& map) {
    return (static_cast<unsigned>(map.of(rank)) & static_cast<unsigned>(stream)) != 0;
  };
  const bool tee = asked(options.tee);
  const bool redirect = asked(options.redirects);
  const bool shown = !options.local_ranks_filter || options.local_ranks_filter->contains(rank);
  return {.console = shown && (tee || !redirect), .prefixed = tee, .file = tee || redirect};
}

bool any_rank(const Options& options, const StreamMap& map) {
  for (std::uint32_t rank = 0; rank < options.nproc; ++rank) {
    if (map.of({rank}) != Streams::None) return true;
  }
  return false;
}

/// The folder for logs and error files: where --log-dir says, or a temporary one where --redirects
/// needs files.
Result<std::optional<agent::LogFolder>> make_log_folder(const Options& options,
                                                        const Environment& environment,
                                                        const std::string& id) {
  std::string base;
  std::string name = folder_name(id) + "_" + folder_name(posix::short_host_name());
  if (options.log_dir) {
    base = *options.log_dir;
  } else if (any_rank(options, options.redirects)) {
    const auto temporary = environment.find("TMPDIR");
    const bool set = temporary != environment.end() && !temporary->second.empty();
    base = set ? temporary->second : "/tmp";
    name = "muster_" + name;
  } else {
    return std::nullopt;
  }
  auto folder = agent::LogFolder::create(base, name);
  if (!folder) return pass(folder.error());
  return std::optional(std::move(*folder));
}

/// Says what is in the log folder, or that there is none where one might be expected.
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

/// OMP_NUM_THREADS for each of several workers: our share of the processors.
std::string omp_share(const Options& options, const Environment& environment, Logger& logger) {
  if (options.nproc < 2 || environment.contains("OMP_NUM_THREADS")) return {};
  const auto cpus = posix::usable_cpus();
  const auto share = std::max(1U, cpus / options.nproc);
  logger.info("OMP_NUM_THREADS={} for each worker: {} processors, {} workers; set it to choose",
              share, cpus, options.nproc);
  return std::to_string(share);
}

/// Whether a program that the user named is an interpreter: `muster python3 train.py`.
bool is_python(const std::string& path) {
  return path.substr(path.rfind('/') + 1).starts_with("python");
}

/// How many connections the store may hold so that the agent keeps the descriptors that it needs to
/// start and to end workers.
std::size_t store_connections(std::uint32_t workers) {
  constexpr std::size_t kOwnDescriptors = 48;
  constexpr std::size_t kForEachWorker = 6;  // Two pidfds, two pipes, and both while it is spawned.
  constexpr std::size_t kFewest = 16;
  const auto kept = kOwnDescriptors + kForEachWorker * workers;
  const std::size_t limit = posix::open_file_limit();
  return std::max(limit > kept ? limit - kept : 0, kFewest);
}

agent::AgentSettings agent_settings(const Options& options, const Program& program) {
  agent::AgentSettings settings;
  for (std::uint32_t rank = 0; rank < options.nproc; ++rank) {
    auto command = worker_command(program, {rank});
    settings.workers.push_back({.path = std::move(command.path),
                                .argv = std::move(command.argv),
                                .out = stream_plan(options, {rank}, Streams::Out),
                                .err = stream_plan(options, {rank}, Streams::Err)});
  }
  settings.grace = options.shutdown_timeout;
  settings.environment.role = options.role;
  settings.environment.agent_hosts_store = options.worker_store == WorkerStore::Agent;
  return settings;
}

int run_agent(std::span<const std::string> argv, const agent::KeeperLink& keeper) {
  const auto started = std::chrono::steady_clock::now();
  std::vector<std::string> entries;
  const auto environment = read_environment(entries);
  const auto parsed = parse_command_line(argv, environment, this_machine());
  if (const auto* now = std::get_if<ExitNow>(&parsed)) return leave(*now);
  const auto& options = std::get<Options>(parsed);

  const auto logger = make_stderr_logger(options.log_level);
  for (const auto& notice : options.notices) logger->info(notice);

  const auto program = resolve_program(options, environment);
  if (!program) return leave(usage_error(program.error().message));
  auto master = numeric_address_of(options.master);
  if (!master) return leave(usage_error("--master-addr: " + master.error().message));

  JobFacts facts;
  facts.id = options.rdzv_id.value_or("");
  if (facts.id.empty()) facts.id = random_id();
  // First the port: where it can't be had nothing was made yet.
  auto bound = posix::bind_tcp(*master);
  if (!bound)
    return own_error("the worker store (--master-addr, --master-port): " + bound.error().message);
  auto logs = make_log_folder(options, environment, facts.id);
  if (!logs) {
    return leave(
        usage_error((options.log_dir ? "--log-dir: " : "--redirects: ") + logs.error().message));
  }

  auto settings = agent_settings(options, *program);
  settings.environment.base = std::move(entries);
  settings.environment.job_id = facts.id;
  settings.environment.omp_num_threads = omp_share(options, environment, *logger);
  settings.store = *master;
  settings.open_files = posix::raise_open_file_limit();
  settings.store_options.limits.connections =
      std::min(settings.store_options.limits.connections, store_connections(options.nproc));
  settings.first_store = std::move(*bound);
  settings.error_files = options.log_dir.has_value();
  if (*logs) facts.log_folder = (*logs)->path();
  settings.logs = std::move(*logs);
  announce_logs(options, facts.log_folder, *logger);
  logger->debug("starting workers={} ({}) program={} ({})", options.nproc, options.nproc_origin,
                program->path, program->why);

  boost::asio::io_context loop(1);
  rendezvous::SoloAttendance attendance(loop.get_executor(),
                                        {.max_restarts = options.max_restarts});
  agent::Agent agent(loop, std::move(settings), keeper, attendance, *logger);
  const auto verdict = agent.run();
  if (!verdict) return own_error(verdict.error().message);

  if (verdict->exit_code != 0) {
    facts.took = std::chrono::steady_clock::now() - started;
    facts.command = shell_text(
        worker_command(*program, verdict->cause ? verdict->cause->local_rank : LocalRank{0}).argv);
    facts.python = program->python;
    if (!facts.python && is_python(program->path)) {
      facts.python = ChosenPython{.path = program->path, .why = "named on the command line"};
    }
    facts.err_on_terminal = posix::is_terminal(2);
    (void)posix::write_within(2, closing_block(*verdict, facts), kReadPatience);
  }
  return verdict->exit_code;
}

}  // namespace
}  // namespace muster::launcher

int main(int argc, char** argv) {
  return muster::agent::run_kept([argc, argv](const muster::agent::KeeperLink& keeper) {
    const std::vector<std::string> arguments(argv, argv + argc);
    try {
      return muster::launcher::run_agent(arguments, keeper);
    } catch (const std::system_error& error) {  // Of Asio, which can't be had without descriptors.
      return muster::launcher::own_error(error.what());
    }
  });
}

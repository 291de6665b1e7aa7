// muster: runs a job's workers on this machine. The process splits into keeper and agent first
// (agent/run/keeper.hpp); the agent reads the command line and builds everything: the attendance of
// a lone node, or a meeting point of several.

#include "agent/run/agent.hpp"
#include "agent/run/keeper.hpp"
#include "base/exit_codes.hpp"
#include "base/posix/folder.hpp"
#include "base/posix/fork.hpp"
#include "base/posix/socket.hpp"
#include "base/posix/stream.hpp"
#include "base/posix/tcp_stream.hpp"
#include "base/posix/whole_file.hpp"
#include "base/text.hpp"
#include "launcher/agent_settings.hpp"
#include "launcher/ending.hpp"
#include "launcher/explain.hpp"
#include "launcher/lookup.hpp"
#include "launcher/machine.hpp"
#include "launcher/meeting_point.hpp"
#include "launcher/node_facts.hpp"
#include "launcher/options.hpp"
#include "launcher/program.hpp"
#include "launcher/relaunch.hpp"
#include "rendezvous/client/secret.hpp"
#include "rendezvous/server/solo_attendance.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>

#include <boost/asio/io_context.hpp>
#include <boost/system/system_error.hpp>

extern char** environ;

namespace muster::launcher {
namespace {

/// An error of our own may be the keeper's death: then we should be gone soon.
constexpr Duration kErrorPatience = std::chrono::milliseconds(500);

int leave(const ExitNow& now) {
  const bool told = posix::write_within(1, now.out, posix::kReadPatience);
  (void)posix::write_within(2, now.err, posix::kReadPatience);
  return told ? now.code : kOwnError;
}

std::string own_error_line(const std::string& message) {
  return "muster: error: " + message + "\n";
}

int own_error(const std::string& message) {
  (void)posix::write_within(2, own_error_line(message), kErrorPatience);
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

/// Before the work is done.
Result<void> can_report(const Options& options) {
  if (options.report.empty()) return {};
  const auto possible = posix::can_replace_file(options.report);
  if (possible) return {};
  return fail(Errc::InvalidArgument, options.report_origin + ": " + possible.error().message);
}

std::uint64_t random_number() {
  std::random_device device;
  return (std::uint64_t{device()} << 32U) | device();
}

/// What a node of several brings to its meeting point.
Result<MeetingPoint::Settings> meeting_settings(const Options& options,
                                                const Environment& environment,
                                                const std::string& local_address) {
  auto token = read_token(options);
  if (!token) return fail(Errc::InvalidArgument, "--token-file: " + token.error().message);
  auto secret = rendezvous::random_secret();
  if (!secret) return pass(secret.error());
  auto control_token = rendezvous::random_secret();
  if (!control_token) return pass(control_token.error());

  const auto& meeting = *options.meeting;
  Hello hello;
  hello.job = *options.rdzv_id;
  hello.launch_tag = options.launch_tag;
  hello.topology = options.topology;
  hello.incarnation = rendezvous::incarnation_of(*secret);
  hello.machine = machine_name(environment);
  hello.name = posix::short_host_name();
  hello.version = MUSTER_VERSION;
  hello.node_rank = options.node_rank;
  hello.store_is_fixed = !local_address.empty();
  hello.settings = options.job;
  MeetingPoint::Settings settings;
  settings.meeting = meeting;
  settings.attendance = {.server = meeting.server,
                         .token = *token,
                         .local_address = local_address,
                         .secret = *std::move(secret),
                         .hello = std::move(hello),
                         .seed = random_number()};
  auto& server = settings.server;
  server.job = *options.rdzv_id;
  server.lease = options.job.lease;
  server.token = *token;
  server.control_token = *std::move(control_token);
  server.store_allow = options.store_allow;
  server.epoch_bits = static_cast<std::uint32_t>(random_number());
  server.seed = random_number();
  server.marker = marker_path(meeting.server, *options.rdzv_id, environment);
  server.runtime_folder =
      rendezvous::runtime_folder(value_of(environment, "XDG_RUNTIME_DIR").value_or(""));
  return settings;
}

Result<agent::Outcome> run_alone(boost::asio::io_context& loop, agent::AgentSettings settings,
                                 const Options& options, const agent::KeeperLink& keeper,
                                 Logger& logger) {
  rendezvous::SoloAttendance attendance(
      loop.get_executor(),
      {.max_restarts = options.job.max_restarts,
       .max_restarts_without_progress = options.job.max_restarts_without_progress,
       .restart_backoff = options.job.restart_backoff,
       .seed = random_number()});
  agent::Agent agent(loop, std::move(settings), keeper, attendance, logger);
  return agent.run();
}

/// Writes down how our part in the job ended. `point`: nullptr on a lone node.
void record(const agent::Outcome& outcome, Ending& ending, const MeetingPoint* point) {
  auto& facts = ending.facts();
  facts.survivors = outcome.survivors;
  if (!outcome.verdict) {
    ending.record(
        outcome.exit_code, outcome.message,
        fmt::format("muster: job {}: {}\n", printable(facts.id), printable(outcome.message)));
    return;
  }
  const auto& verdict = *outcome.verdict;
  if (point != nullptr) {
    const auto rank = facts.node_rank = point->node_rank();
    const bool is_our_worker = verdict.cause && verdict.cause->cause != Cause::LostNode &&
                               verdict.cause->node_rank == rank;
    facts.is_told_elsewhere = rank && *rank != NodeRank{0} && !is_our_worker && !verdict.alone;
  }
  ending.record(verdict, outcome.recorded);
}

/// For whoever reads our streams, twice: what the workers wrote, and how it ended.
Duration read_patience(const Stopping& stopping) {
  constexpr int kShare = 4;
  return stopping.kill_after ? stopping.kept_for_verdict / kShare : posix::kReadPatience;
}

/// `--explain`.
int explain(const Options& options, const Environment& environment,
            std::vector<std::string> entries) {
  const auto logger = make_stderr_logger(options.log_level);
  const auto program = resolve_program(options, environment);
  auto settings = agent_settings(options, program.value_or(Program()), environment);
  share_machine(settings, options, environment, *logger);
  settings.environment.base = workers_base(std::move(entries), options);
  return leave({.code = 0, .out = explanation(options, program, settings.environment), .err = {}});
}

int run_agent(std::span<const std::string> argv, const agent::KeeperLink& keeper) {
  std::vector<std::string> entries;
  const auto environment = read_environment(entries);
  auto parsed = parse_command_line(argv, environment, this_machine());
  if (const auto* now = std::get_if<ExitNow>(&parsed)) return leave(*now);
  if (std::get<Options>(parsed).explain)
    return explain(std::get<Options>(parsed), environment, std::move(entries));
  if (const auto named = name_interface(std::get<Options>(parsed)); !named)
    return leave(usage_error("--iface: " + named.error().message));
  const auto& options = std::get<Options>(parsed);

  auto id = options.rdzv_id.value_or("");
  if (id.empty()) id = random_id();

  const auto logger = make_stderr_logger(options.log_level);
  std::shared_ptr<agent::JsonFormat> json;
  if (options.output.log_format == LogFormat::Json) {
    json = std::make_shared<agent::JsonFormat>(id);
    agent::log_as_json(*logger, json);
  }
  for (const auto& notice : options.notices) logger->info(notice);
  for (const auto& warning : options.warnings) logger->warn(warning);

  const auto program = resolve_program(options, environment);
  if (!program) return leave(usage_error(program.error().message));

  if (const auto possible = can_report(options); !possible)
    return leave(usage_error(possible.error().message));

  Ending ending(id,
                {.report = options.report,
                 .parent_error = value_of(environment, "TORCHELASTIC_ERROR_FILE").value_or("")},
                *program, MUSTER_VERSION, *logger, json.get());
  auto& facts = ending.facts();
  const auto give_up = [&ending](const std::string& message) {
    const int code = own_error(message);
    ending.record(code, message, own_error_line(message));
    return code;
  };

  auto settings = agent_settings(options, *program, environment);
  settings.output.json = json;
  std::optional<MeetingPoint::Settings> meeting;
  if (options.meeting) {
    const auto local_address = own_address(options);
    if (!local_address) return leave(usage_error("--local-addr: " + local_address.error().message));
    auto made = meeting_settings(options, environment, *local_address);
    if (!made) return leave(usage_error(made.error().message));
    meeting = std::move(*made);
    settings.store = {local_address->empty() ? any_address() : *local_address, 0};
  } else {
    auto master = numeric_address_of(options.master);
    if (!master) return leave(usage_error("--master-addr: " + master.error().message));
    settings.store = *master;
    facts.node_rank = NodeRank{0};
    // First the port: where it can't be had nothing was made yet.
    if (!settings.store_ports || master->port != 0) {
      auto bound = agent::StorePort::reserve_at(*master, settings.environment.agent_hosts_store);
      if (!bound) {
        return give_up("the worker store (--master-addr, --master-port): " + bound.error().message);
      }
      settings.first_store = std::move(*bound);
    }
  }
  auto logs = make_log_folder(options, environment, facts.id);
  if (!logs) {
    return leave(
        usage_error((options.log_dir ? "--log-dir: " : "--redirects: ") + logs.error().message));
  }

  share_machine(settings, options, environment, *logger);
  settings.environment.base = workers_base(std::move(entries), options);
  settings.environment.job_id = facts.id;
  if (*logs) facts.log_folder = (*logs)->path();
  settings.logs = std::move(*logs);
  announce_logs(options, facts.log_folder, *logger);
  logger->debug("starting workers={} ({}) program={} ({})", options.nproc, options.nproc_origin,
                program->path, program->why);

  boost::asio::io_context loop(1);
  Result<agent::Outcome> outcome;
  std::unique_ptr<MeetingPoint> point;
  const auto patience = settings.read_patience = read_patience(options.stopping);
  settings.on_outcome = [&ending, &point](const agent::Outcome& one) {
    record(one, ending, point.get());
  };
  if (meeting) {
    meeting->server.store.limits = settings.store_options.limits;
    point = std::make_unique<MeetingPoint>(loop, *std::move(meeting), keeper, *logger);
    agent::Agent agent(loop, std::move(settings), keeper, *point, *logger);
    outcome = agent.run();
  } else {
    outcome = run_alone(loop, std::move(settings), options, keeper, *logger);
  }
  if (!outcome) return give_up(outcome.error().message);
  ending.say(patience);
  if (!outcome->verdict) return outcome->exit_code;
  if (point) point->see_off(agent::user_signals(keeper.user_signals));
  return outcome->verdict->exit_code;
}

/// Where only this launcher runs in an allocation of several machines, the process becomes the srun
/// that starts one on each. Returns the exit code where it can't, and nothing where it need not.
std::optional<int> become_srun(const std::vector<std::string>& argv) {
  std::vector<std::string> entries;
  const auto environment = read_environment(entries);
  const auto found = surroundings_of(environment, {});
  if (!found || !found->bare) return std::nullopt;
  const auto parsed = parse_command_line(argv, environment, this_machine());
  const auto* options = std::get_if<Options>(&parsed);
  if (options == nullptr || !options->relaunch || options->explain) return std::nullopt;

  auto words = *options->relaunch;
  words.insert(words.end(), argv.begin(), argv.end());
  const auto line = printable(as_typed(words));
  const auto srun = find_on_path(words.front(), environment);
  if (!srun) {
    return leave(usage_error(found->whole + " has several nodes, and muster is on one of them: " +
                             "there is no srun in PATH to start it on each. Start it by " + line +
                             ", or give --nnodes 1"));
  }
  make_stderr_logger(options->log_level)->info("{} has several nodes: {}", found->whole, line);
  const auto error =
      posix::become(*srun, words, srun_environment(std::move(entries), *found->bare));
  return leave(usage_error(error.message));
}

}  // namespace
}  // namespace muster::launcher

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  if (const auto code = muster::launcher::become_srun(arguments)) return *code;
  return muster::agent::run_kept([&arguments](const muster::agent::KeeperLink& keeper) {
    try {
      return muster::launcher::run_agent(arguments, keeper);
    } catch (const boost::system::system_error& error) {
      // Of Asio, which can't be had without descriptors.
      return muster::launcher::own_error(
          muster::posix::errno_error(error.code().value(), "make an event loop").message);
    }
  });
}

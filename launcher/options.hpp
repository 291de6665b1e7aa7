#pragma once

#include "base/endpoint.hpp"
#include "base/ids.hpp"
#include "base/log/log.hpp"
#include "base/membership.hpp"
#include "launcher/environment.hpp"
#include "launcher/given.hpp"
#include "launcher/output_options.hpp"
#include "launcher/surroundings/surroundings.hpp"
#include "rendezvous/store/door.hpp"

#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace muster::launcher {

/// What the machine has. Asked only when a flag wants to know: looking costs start-up time.
struct Machine {
  std::function<std::uint32_t()> cpus;            ///< In our affinity mask.
  std::function<std::uint32_t()> nvidia_devices;  ///< Device files /dev/nvidia0, /dev/nvidia1...
  ReadFile read_file;  ///< Small ones that the command line or a variable names.
};

/// Which of a worker's streams something is done to.
enum class Streams : std::uint8_t { None = 0, Out = 1, Err = 2, Both = 3 };

/// Streams by local rank, as `--redirects` and `--tee` say: the same for everyone, or for the named
/// ranks only.
struct StreamMap {
  Streams everyone = Streams::None;
  std::map<LocalRank, Streams> named;

  [[nodiscard]] Streams of(LocalRank rank) const {
    const auto found = named.find(rank);
    return found == named.end() ? everyone : found->second;
  }
  friend bool operator==(const StreamMap&, const StreamMap&) = default;
};

/// Who hosts the store at which the workers meet.
enum class WorkerStore { Agent, Torch };

/// Whether, and in which spelling, a worker gets `--local_rank=N` before its own arguments.
enum class PassLocalRank { No, Underscore, Dash };

/// How the nodes of a job find each other, as torchrun calls it.
enum class RdzvBackend {
  Static,  ///< At the address of the workers' store.
  C10d,    ///< At an endpoint of its own; each round has another store.
};

/// Where a job's nodes meet: a rendezvous server, embedded in the launcher of one of them, or a
/// standing one.
struct Meeting {
  Endpoint server;              ///< The host may be a name; the port is not 0.
  std::string origin;           ///< The flag or variable that names it: whom to blame.
  std::optional<bool> is_host;  ///< Whether this node is to host the server; nullopt: as it comes.
  bool is_elsewhere = false;    ///< The surroundings say that it is another machine than this one.
};

/// What a flag or its variable was given, and which of them.
template <class T>
struct Asked {
  T value;
  std::string origin;
};

/// What was asked for about the nodes, flag by flag, where it is given: what it adds up to stands
/// in `job`, `meeting`, `master`.
struct AskedOfNodes {
  std::optional<Asked<std::string>> nnodes;  ///< As it was typed.
  std::optional<Asked<RdzvBackend>> backend;
  std::optional<Asked<std::string>> endpoint;  ///< `host` or `host:port`, and one that can be read.
  std::optional<Asked<Endpoint>> master_addr;  ///< Its host.
  std::optional<Asked<Endpoint>> master_port;  ///< Its port.
  std::optional<Asked<std::string>> rdzv_id;
  std::optional<Asked<bool>> is_host;
  bool is_elsewhere = false;               ///< As of Meeting.
  std::optional<Asked<Duration>> timeout;  ///< Of `--rdzv-conf`: a static rendezvous has it.
  std::optional<Asked<Duration>> join_timeout;
  std::vector<std::string> for_several;  ///< Origins of flags that mean nothing to a lone node.
};

/// Ports for worker stores, both ends included.
struct PortRange {
  std::uint16_t low = 0;
  std::uint16_t high = 0;
  friend bool operator==(const PortRange&, const PortRange&) = default;
};

/// How workers are told that their machine will be taken away.
struct Preemption {
  std::string command;  ///< Exits with 0 when it will be. Empty: none.
  int signal = 0;       ///< What every rank's main process gets. 0: none.
  std::optional<Asked<Duration>> asked_deadline;
  Duration deadline = std::chrono::seconds(30);  ///< For saving, from a notice here.
  bool is_asked_for = false;                     ///< Any of its flags is given.
};

/// How workers are ended.
struct Stopping {
  std::optional<Asked<Duration>> shutdown_timeout;  ///< As it was given.
  Duration grace = std::chrono::seconds(30);        ///< From a worker's stop signal to SIGKILL.
  /// From a signal to the launcher until it is killed itself; nullopt: nobody will.
  std::optional<Duration> kill_after;
  Duration kept_for_verdict{};                        ///< Of that, after the workers are killed.
  Duration drain_timeout = std::chrono::seconds(10);  ///< For what a worker leaves at its exit 0.
  std::optional<Duration> success_skew;  ///< How long the others may run on after an exit 0.
  bool signal_group = false;
  std::set<int> forwarded = {SIGUSR1, SIGUSR2};  ///< To the launcher, and for the workers alone.
  bool die_with_parent = false;
  bool sigterm_is_notice = false;  ///< This machine will be taken away.
};

/// How the user asked that the program be run.
enum class ProgramKind {
  Script,    ///< Python where it is Python, else as it is: resolve_program decides.
  Module,    ///< -m
  NoPython,  ///< --no-python
  RunPath,   ///< --run-path
};

/// A command line that makes sense, with defaults and variables filled in.
struct Options {
  std::uint32_t nproc = 1;   ///< Workers on this node; at least 1.
  std::string nproc_origin;  ///< Where that number comes from: `--nproc-per-node gpu`, `default`.
  bool standalone = false;

  /// What all nodes must agree on. Without a meeting, `lease` and what else concerns several nodes
  /// is without meaning.
  JobSettings job;
  std::optional<NodeRank> node_rank;  ///< Given.
  std::optional<Meeting> meeting;     ///< nullopt: one node, which needs no server.
  std::string local_addr;             ///< Name or number; empty: that of the route to the server.
  std::optional<std::string> token_file;
  std::vector<store::Network> store_allow;
  std::optional<PortRange> port_range;
  /// For GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME where unset; "auto": the one of the route.
  /// Empty: Gloo's is that of the route, NCCL's is left alone.
  std::string iface;
  Preemption preemption;
  AskedOfNodes asked;

  Surroundings surroundings;
  std::string launch_tag;  ///< What the scheduler calls this launch; empty: none.
  std::string topology;    ///< By which neighbours stand together; empty: unknown.
  /// The srun, less our own command line, that is to start a launcher on each machine; the options
  /// about nodes are without meaning then.
  std::optional<std::vector<std::string>> relaunch;

  /// The job's id; nullopt: main makes a random one (never where there is a meeting). Any bytes: a
  /// folder is named by folder_name() of it.
  std::optional<std::string> rdzv_id;
  std::string role = "default";

  /// Where the worker store listens. Port 0: any free one. The host may be a name.
  Endpoint master{.host = "127.0.0.1", .port = 0};
  WorkerStore worker_store = WorkerStore::Agent;

  std::optional<std::string> log_dir;  ///< Not empty.
  bool keeps_files = true;             ///< False: `--log-dir /dev/null`.
  std::string report;                  ///< The file for the end of the job; empty: none.
  std::string report_origin;           ///< The flag or variable that names it.
  StreamMap redirects;                 ///< To files.
  StreamMap tee;                       ///< To files and, with a prefix, to our own streams.
  OutputOptions output;

  /// Python workers tell their optimizer's steps, whatever their script says.
  bool track_steps = false;
  bool clean_shm = false;  ///< What a round leaves in /dev/shm is removed.

  Stopping stopping;

  ProgramKind program_kind = ProgramKind::Script;
  std::string script;                    ///< File, module or program, as it was typed.
  std::vector<std::string> script_args;  ///< Untouched bytes.
  PassLocalRank pass_local_rank = PassLocalRank::No;
  std::string invoked_as;  ///< argv[0]: a Python beside it is preferred.

  bool explain = false;  ///< Say what would be done, and end.
  GivenFlags given;      ///< All that is given to flags, and where: for `--explain`.

  spdlog::level::level_enum log_level = spdlog::level::info;
  std::vector<std::string> warnings;  ///< For the user: what works badly.
  std::vector<std::string>
      notices;  ///< For the user, one line each: what has no meaning, or not the meaning hoped for.
};

/// The process is to print this and end.
struct ExitNow {
  int code = 0;
  std::string out;  ///< For stdout.
  std::string err;  ///< For stderr; ends in `muster: error: ...` where `code` is 2.
};

/// Reads the command line (argv[0] included) and the variables that stand for flags, as
/// docs/reference/flags.md says. Any bytes are welcome; nothing after the script is looked at.
[[nodiscard]] std::variant<Options, ExitNow> parse_command_line(std::span<const std::string> argv,
                                                                const Environment& environment,
                                                                const Machine& machine);

/// What is printed for a command line that makes no sense, or names a program that can't be run:
/// exit code 2.
[[nodiscard]] ExitNow usage_error(const std::string& message);

/// A job's id as part of a file name: whatever could leave the folder, hide in it, be too long or
/// upset a terminal becomes `_`. Two ids may have the same name.
[[nodiscard]] std::string folder_name(std::string_view job_id);

}  // namespace muster::launcher

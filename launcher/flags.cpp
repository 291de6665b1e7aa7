#include "launcher/flags.hpp"

#include <algorithm>
#include <array>

namespace muster::launcher {
namespace {

constexpr Flag shown(std::string_view name, char letter, Takes takes, std::string_view value,
                     std::string_view help) {
  return {name, letter, takes, Owner::Torchrun, Variable::Has, value, "", help};
}

constexpr Flag ours(std::string_view name, Takes takes, std::string_view value,
                    std::string_view implied, std::string_view help) {
  return {name, '\0', takes, Owner::Muster, Variable::Has, value, implied, help};
}

constexpr Flag not_yet(std::string_view name, Takes takes, Variable variable = Variable::Has) {
  return {name, '\0', takes, Owner::NotYet, variable, "", "", ""};
}

constexpr std::array kFlags{
    Flag{"help", 'h', Takes::Over, Owner::Torchrun, Variable::HasNone, "", "",
         "show this text and exit"},
    Flag{"version", '\0', Takes::Over, Owner::Muster, Variable::HasNone, "", "",
         "show the version and exit"},
    Flag{"explain", '\0', Takes::Nothing, Owner::Muster, Variable::HasNone, "", "",
         "say what would be done and why, and exit"},
    ours("config", Takes::Value, "FILE", "", "more flags, as TOML: nnodes = 2"),
    shown("nproc-per-node", '\0', Takes::Value, "N", "workers: a number, gpu, cpu or auto [1]"),
    shown("nnodes", '\0', Takes::Value, "N", "nodes: a number, MIN:MAX, or MIN:MAX:STEP [1]"),
    shown("node-rank", '\0', Takes::Value, "N", "rank of this node [the rendezvous decides]"),
    shown("standalone", '\0', Takes::Nothing, "", "one node, on a free port"),
    shown("master-addr", '\0', Takes::Value, "HOST", "where the worker store listens [127.0.0.1]"),
    shown("master-port", '\0', Takes::Value, "PORT", "its port [a free one; several nodes: 29500]"),
    shown("rdzv-backend", '\0', Takes::Value, "NAME",
          "how nodes meet: c10d, or static at the store's own address [static]"),
    shown("rdzv-endpoint", '\0', Takes::Value, "HOST:PORT",
          "where they meet [port 29400; static: 29500]"),
    shown("rdzv-id", '\0', Takes::Value, "ID", "the job's id [one node: random; else none]"),
    shown("rdzv-conf", '\0', Takes::Value, "KEY=VALUE,...",
          "join_timeout, last_call_timeout, is_host"),
    shown("local-addr", '\0', Takes::Value, "ADDRESS",
          "this node's address for the others [that of the route]"),
    ours("token-file", Takes::Value, "FILE", "", "a secret that all nodes and the server share"),
    ours("lease", Takes::Value, "TIME", "",
         "how long a node that is not heard of keeps its ranks [10s]"),
    ours("prefer", Takes::Value, "N", "", "the number of nodes to wait for, beyond the fewest"),
    ours("scale-up", Takes::Value, "WHEN", "",
         "when a running job takes nodes in: now, checkpoint or never [now]"),
    ours("restart-backoff", Takes::Value, "TIME", "", "the pause after a failure [0]"),
    ours("store-allow", Takes::Values, "NETWORK", "",
         "who else may come to the worker store: 10.0.0.0/8, an address, any"),
    ours("port-range", Takes::Value, "LOW-HIGH", "", "ports for worker stores [any free one]"),
    ours("iface", Takes::MaybeValue, "NAME|NETWORK", "auto",
         "tell NCCL, too, the interface to use: the one of the route, or NAME"),
    ours("preempt-command", Takes::Value, "COMMAND", "",
         "asked now and then: exits with 0 when this machine will be taken away"),
    ours("preempt-signal", Takes::Value, "SIGNAL", "", "what all workers get then [none]"),
    ours("preempt-deadline", Takes::Value, "TIME", "", "how long they have to save then [30]"),
    shown("max-restarts", '\0', Takes::Value, "N", "restarts after failures [0]"),
    ours("max-restarts-without-progress", Takes::Value, "N", "",
         "end with code 93 when N attempts in a row fail at no higher step [never]"),
    ours("clean-shm", Takes::Nothing, "", "",
         "remove what workers leave in /dev/shm before the next start"),
    ours("track-steps", Takes::Nothing, "", "",
         "count PyTorch's optimizer steps, without a change of the script"),
    shown("shutdown-timeout", '\0', Takes::Value, "TIME",
          "from a worker's stop signal to SIGKILL: 30, 500ms [30; scheduler: 25]"),
    ours("kill-after", Takes::Value, "TIME", "",
         "when whoever signals muster kills it [a scheduler: 30; else never]"),
    ours("drain-timeout", Takes::Value, "TIME", "",
         "for what a worker leaves behind at its exit 0 [10]"),
    ours("success-skew", Takes::Value, "TIME", "",
         "how long others may run on once a worker has exited 0 [for ever]"),
    ours("signal-group", Takes::Nothing, "", "",
         "signal workers' process groups, not their main processes alone"),
    ours("forward-signals", Takes::Values, "SIGNALS", "",
         "for the workers alone, beside USR1 and USR2: HUP,ALRM"),
    ours("die-with-parent", Takes::Nothing, "", "",
         "end when the process that started muster does"),
    shown("role", '\0', Takes::Value, "NAME", "the workers' label [default]"),
    shown("run-path", '\0', Takes::Nothing, "", "run the script with Python's runpy"),
    shown("module", 'm', Takes::Nothing, "", "the script is a Python module"),
    shown("no-python", '\0', Takes::Nothing, "", "the script is a program: execute it as it is"),
    ours("pass-local-rank", Takes::MaybeValue, "STYLE", "underscore",
         "give the script --local_rank=N (=dash: --local-rank=N)"),
    ours("worker-store", Takes::Value, "HOST", "",
         "who hosts the store of the workers: agent or torch [agent]"),
    shown("log-dir", '\0', Takes::Value, "DIR", "where log files go; /dev/null: nowhere"),
    shown("redirects", 'r', Takes::Value, "MAP",
          "streams into files: 0 none, 1 stdout, 2 stderr, 3 both, or 0:3,1:2 by rank [0]"),
    shown("tee", 't', Takes::Value, "MAP", "the same, and to the console as well [0]"),
    shown("local-ranks-filter", '\0', Takes::Value, "RANKS",
          "local ranks that may write to the console: 0,2-5 [all]"),
    ours("ranks-filter", Takes::Value, "RANKS", "", "the same by rank in the job [all]"),
    shown("log-line-prefix-template", '\0', Takes::Value, "TEXT",
          "before each line of --tee: ${hostname} ${role_name} ${rank} ${local_rank} ${time}"),
    shown("duplicate-stdout-filters", '\0', Takes::Value, "TEXTS",
          "copy lines of --tee with one of them into filtered_stdout.log"),
    shown("duplicate-stderr-filters", '\0', Takes::Value, "TEXTS",
          "the same, into filtered_stderr.log"),
    ours("fold", Takes::Nothing, "", "", "show a line that several workers write once"),
    ours("log-format", Takes::Value, "FORMAT", "",
         "of the log and all that workers write: text or json [text]"),
    ours("log-max-size", Takes::Value, "SIZE", "",
         "begin a new log file rather than exceed it: 100M [never]"),
    ours("log-keep", Takes::Value, "N", "", "older log files to keep then, of each stream [5]"),
    ours("stdin", Takes::Value, "WHO", "",
         "who reads the input: all (a copy each), none, or a rank [all, the same open file]"),
    ours("report", Takes::Value, "FILE", "", "write how the job ended, as JSON"),
    ours("log-level", Takes::Value, "LEVEL", "",
         "muster's own log: trace, debug, info, warn, error, off [info]"),
    shown("monitor-interval", '\0', Takes::Value, "SECONDS", "accepted, without meaning"),
    shown("start-method", '\0', Takes::Value, "METHOD", "accepted, without meaning"),

    not_yet("event-log-handler", Takes::Value),
    not_yet("logs-specs", Takes::Value, Variable::HasNone),
    not_yet("numa-binding", Takes::Value, Variable::HasNone),
    not_yet("signals-to-handle", Takes::Value),
    not_yet("virtual-local-rank", Takes::Nothing),
    not_yet("print-completion", Takes::Value, Variable::HasNone),
};

}  // namespace

std::span<const Flag> flags() { return kFlags; }

std::string long_option(const Flag& flag) { return "--" + std::string(flag.name); }

std::vector<std::string> long_options(const Flag& flag) {
  std::vector<std::string> options{long_option(flag)};
  if (flag.name.find('-') != std::string_view::npos) {
    std::string underscored(flag.name);
    std::ranges::replace(underscored, '-', '_');
    options.push_back("--" + underscored);
  }
  return options;
}

std::string variable_name(const Flag& flag) {
  if (flag.variable == Variable::HasNone) return {};
  std::string name(flag.owner == Owner::Muster ? "MUSTER_" : "PET_");
  for (const char letter : flag.name) {
    name += letter == '-' ? '_' : static_cast<char>(letter - 'a' + 'A');
  }
  return name;
}

}  // namespace muster::launcher

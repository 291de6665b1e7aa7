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

/// How nodes find each other: one node has no need of it.
constexpr Flag not_yet_meeting(std::string_view name) {
  return {
      name,          '\0', Takes::Value, Owner::NotYet,
      Variable::Has, "",   "",           "--master-addr and --master-port fix the store's address"};
}

constexpr std::array kFlags{
    Flag{"help", 'h', Takes::Over, Owner::Torchrun, Variable::HasNone, "", "",
         "show this text and exit"},
    Flag{"version", '\0', Takes::Over, Owner::Muster, Variable::HasNone, "", "",
         "show the version and exit"},
    shown("nproc-per-node", '\0', Takes::Value, "N", "workers: a number, gpu, cpu or auto [1]"),
    shown("nnodes", '\0', Takes::Value, "N", "nodes: only 1 in this version [1]"),
    shown("node-rank", '\0', Takes::Value, "N", "rank of this node: only 0 in this version [0]"),
    shown("standalone", '\0', Takes::Nothing, "", "one node, on a free port"),
    shown("master-addr", '\0', Takes::Value, "HOST", "where the worker store listens [127.0.0.1]"),
    shown("master-port", '\0', Takes::Value, "PORT", "its port [a free one]"),
    shown("rdzv-id", '\0', Takes::Value, "ID", "the job's id [random]"),
    shown("max-restarts", '\0', Takes::Value, "N", "restarts after failures [0]"),
    shown("shutdown-timeout", '\0', Takes::Value, "TIME",
          "from a worker's stop signal to SIGKILL: 30, 30s, 500ms [30]"),
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
          "local ranks that may write to the console: 0,1 [all]"),
    ours("log-level", Takes::Value, "LEVEL", "",
         "muster's own log: trace, debug, info, warn, error, off [info]"),
    shown("monitor-interval", '\0', Takes::Value, "SECONDS", "accepted, without meaning"),
    shown("start-method", '\0', Takes::Value, "METHOD", "accepted, without meaning"),

    not_yet_meeting("rdzv-backend"),
    not_yet_meeting("rdzv-endpoint"),
    not_yet_meeting("rdzv-conf"),
    not_yet("event-log-handler", Takes::Value),
    not_yet("log-line-prefix-template", Takes::Value),
    not_yet("duplicate-stdout-filters", Takes::Value),
    not_yet("duplicate-stderr-filters", Takes::Value),
    not_yet_meeting("local-addr"),
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

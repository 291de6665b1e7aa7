#include "launcher/settle_surroundings.hpp"

#include "base/text.hpp"
#include "launcher/hosting.hpp"
#include "launcher/relaunch.hpp"
#include "launcher/text.hpp"
#include "launcher/values.hpp"
#include "rendezvous/core/address.hpp"

#include <algorithm>
#include <utility>

namespace muster::launcher {
namespace {

/// What `--nnodes` allows of the surroundings.
enum class Fit { Exact, MayGrow, HasSpares };

class Settler {
 public:
  Settler(const Surroundings& found, GivenFlags& flags, Options& options)
      : found_(found), flags_(flags), options_(options) {}

  Result<void> settle(const Environment& environment) {
    if (found_.bare) return leave_bare(environment);
    take_workers();
    auto met = settle_nodes();
    if (!taken_.empty()) options_.notices.push_back("from " + found_.name + ": " + taken_);
    notice_devices();
    return met;
  }

 private:
  [[nodiscard]] bool is_given(std::string_view flag) const {
    const auto at = flags_.find(flag);
    return at != flags_.end() && !at->second.value.empty();
  }

  [[nodiscard]] std::string words_of(std::string_view flag) const {
    const auto& given = flags_.find(flag)->second;
    return given.origin + " " + given.value;
  }

  void give(const std::string& flag, std::string value, const std::string& origin) {
    flags_[flag] = {std::move(value), origin};
  }

  /// `2 nodes (SLURM_STEP_NUM_TASKS)`, for the line that tells what is taken.
  void say(const std::string& what, const std::string& origin) {
    if (!taken_.empty()) taken_ += ", ";
    taken_ += what;
    if (!origin.empty()) taken_ += " (" + origin + ")";
  }

  void notice(std::string text) { options_.notices.push_back(std::move(text)); }

  void take_workers() {
    if (!found_.slots || found_.slots->value == 0 || is_given("nproc-per-node")) return;
    give("nproc-per-node", std::to_string(found_.slots->value), found_.slots->origin);
    say(count_of(found_.slots->value, "worker"), found_.slots->origin);
  }

  /// The allowed numbers of nodes; nullopt where they are given and make no sense, which is said
  /// later.
  [[nodiscard]] std::optional<NodeCounts> wanted() const {
    if (is_given("nnodes")) return parse_nodes(flags_.find("nnodes")->second.value);
    const auto number = found_.launchers ? found_.launchers->value : 1;
    return NodeCounts{number, number, 1};
  }

  [[nodiscard]] bool has_endpoint() const {
    return is_given("rdzv-endpoint") || is_given("master-addr");
  }

  /// `Slurm's step has 2 nodes`.
  [[nodiscard]] std::string has_so_many() const {
    return found_.whole + " has " + count_of(found_.launchers->value, "node") + " (" +
           found_.launchers->origin + ")";
  }

  Result<void> settle_nodes() {
    const auto nodes = wanted();
    if (!nodes) return {};
    if (!found_.launchers) return settle_uncounted(*nodes);
    const auto number = found_.launchers->value;
    if (number < 2) return {};
    if (nodes->max == 1) {
      notice(words_of("nnodes") + ", but " + has_so_many() + ": each runs a job of its own");
      return {};
    }
    if (nodes->min > number) {
      const auto contradiction = words_of("nnodes") + ", but " + has_so_many();
      if (has_endpoint()) {
        notice(contradiction + ": the others must come from elsewhere");
        return refuse_loopback();
      }
      return fail(Errc::InvalidArgument, contradiction +
                                             ": leave it out, or give --rdzv-backend c10d and "
                                             "--rdzv-endpoint HOST if others come from elsewhere");
    }
    if (!is_given("nnodes")) {
      give("nnodes", std::to_string(number), found_.launchers->origin);
      say(count_of(number, "node"), found_.launchers->origin);
    }
    if (nodes->max < number) {
      notice(words_of("nnodes") + ", but " + has_so_many() + ": " +
             std::to_string(number - nodes->max) + " of them stand by as spares");
    }
    return meet(*nodes, nodes->max > number   ? Fit::MayGrow
                        : nodes->max < number ? Fit::HasSpares
                                              : Fit::Exact);
  }

  Result<void> settle_uncounted(const NodeCounts& nodes) {
    if (!found_.node_rank) return {};
    if (!is_given("nnodes")) {
      notice(found_.whole +
             " does not say how many nodes it has: --nnodes does; this one runs alone");
      return {};
    }
    return nodes.max > 1 ? meet(nodes, Fit::Exact) : Result<void>();
  }

  Result<void> meet(const NodeCounts& nodes, Fit fit) {
    const auto& rank = found_.node_rank;
    if (fit == Fit::Exact && rank) {
      if (!is_given("node-rank")) {
        give("node-rank", std::to_string(rank->value), rank->origin);
        say("node rank " + std::to_string(rank->value), rank->origin);
      } else if (flags_.at("node-rank").value != std::to_string(rank->value)) {
        notice(words_of("node-rank") + ", but " + rank->origin + " is " +
               std::to_string(rank->value) + ": the former counts");
      }
    }
    if (const auto settled = settle_endpoint(); !settled) return settled;
    if (const auto& job = found_.job_id; job && !is_given("rdzv-id")) {
      give("rdzv-id", job->value, job->origin);
      say("id " + job->value, job->origin);
    }
    if (found_.launchers && nodes.min < nodes.max && !is_given("prefer")) {
      const auto expected = std::clamp(found_.launchers->value, nodes.min, nodes.max);
      give("prefer", std::to_string(expected), found_.launchers->origin);
      say(std::to_string(expected) + " expected", found_.launchers->origin);
    }
    if (fit != Fit::MayGrow) options_.launch_tag = found_.launch_tag;
    if (found_.topology) options_.topology = found_.topology->value;
    return {};
  }

  [[nodiscard]] bool is_on_several_machines() const {
    if (found_.machines != 0) return found_.machines > 1;
    return !found_.launchers || found_.launchers->value > found_.launchers_here;
  }

  Result<void> settle_endpoint() {
    if (has_endpoint()) return refuse_loopback();
    const auto& host = found_.first_host;
    if (!host || (!found_.job_id && !found_.port && !is_given("rdzv-id"))) {
      return fail(Errc::InvalidArgument,
                  (is_given("nnodes") ? words_of("nnodes") + ": " : "") +
                      "the nodes have no place to meet: " + found_.how_to_meet);
    }
    options_.asked.is_elsewhere = found_.is_elsewhere;
    if (is_given("master-port")) {
      give("master-addr", host->value, host->origin);
      say("store at " + host->value, host->origin);
      return {};
    }
    const auto id = is_given("rdzv-id") ? flags_.at("rdzv-id").value
                                        : found_.job_id.value_or(Told<std::string>()).value;
    const auto port = found_.port.value_or(port_for(id));
    const auto endpoint = to_string(Endpoint{host->value, port});
    give("rdzv-endpoint", endpoint, host->origin);
    say("endpoint " + endpoint, host->origin);
    if (!found_.is_static && !is_given("rdzv-backend")) give("rdzv-backend", "c10d", host->origin);
    return {};
  }

  /// Each machine would meet itself there, and wait for the others.
  [[nodiscard]] Result<void> refuse_loopback() const {
    if (!is_on_several_machines()) return {};
    const auto* const flag = is_given("rdzv-endpoint") ? "rdzv-endpoint" : "master-addr";
    const auto endpoint = parse_endpoint(flags_.find(flag)->second.value, 0);
    if (!endpoint || !(is_localhost(endpoint->host) || rendezvous::is_loopback(endpoint->host)))
      return {};
    return fail(Errc::InvalidArgument,
                words_of(flag) + " is another one on each machine, but " +
                    (found_.launchers ? has_so_many() : found_.whole + " has several") +
                    (found_.first_host ? ": leave it out, or name one of the machines"
                                       : ": name one of the machines"));
  }

  void notice_devices() {
    const auto here = found_.launchers_here;
    if (here < 2 || !found_.is_first_here) return;
    if (is_given("nproc-per-node") && parse_integer(flags_.at("nproc-per-node").value) > 1) {
      notice(words_of("nproc-per-node") + ", and " + found_.name + " has started " +
             std::to_string(here) + " launchers on this machine: each starts so many workers");
    }
    const auto& devices = found_.devices;
    if (!devices || devices->value.find(',') != std::string::npos) return;
    notice(
        devices->origin + "=" + devices->value + " shows each of the " + std::to_string(here) +
        " launchers here one GPU only: peer access between them, and scripts that choose a GPU " +
        "by LOCAL_RANK, need all" + (found_.name == "Slurm" ? ": srun --gpu-bind=none" : ""));
  }

  Result<void> leave_bare(const Environment& environment) {
    const auto wanted = is_given("nnodes") ? parse_nodes(flags_.at("nnodes").value)
                                           : NodeCounts{1, found_.bare->nodes, 1};
    if (!wanted || wanted->max == 1 || has_endpoint() || is_given("node-rank")) return {};
    if (wanted->min > found_.bare->nodes) {
      return fail(Errc::InvalidArgument, words_of("nnodes") + ", but " + has_so_many_bare());
    }
    if (value_of(environment, kRelaunchedVariable) == found_.bare->job) {
      return fail(Errc::InvalidArgument,
                  has_so_many_bare() + ", and srun has started muster already (" +
                      kRelaunchedVariable + "), but in no step: give --nnodes 1 for one node");
    }
    options_.relaunch = srun_words(*found_.bare, std::min(wanted->max, found_.bare->nodes));
    return {};
  }

  [[nodiscard]] std::string has_so_many_bare() const {
    return found_.whole + " has " + count_of(found_.bare->nodes, "node");
  }

  const Surroundings& found_;
  GivenFlags& flags_;
  Options& options_;
  std::string taken_;
};

}  // namespace

Result<void> settle_surroundings(const Surroundings& found, const Environment& environment,
                                 GivenFlags& flags, Options& options) {
  return Settler(found, flags, options).settle(environment);
}

void warn_of_processors(Options& options) {
  const auto& found = options.surroundings;
  if (!found.cpus || !found.is_first_here) return;
  const auto cpus = found.cpus->value;
  const auto workers = options.nproc * found.launchers_here;
  const auto all = found.job_cpus ? found.job_cpus->value : cpus;
  const bool is_small_share = cpus * 2 < all;
  if (cpus >= workers && !is_small_share) return;
  std::string text = found.whole + " has " + count_of(cpus, "processor") + " here (" +
                     found.cpus->origin + ") for " + count_of(workers, "worker");
  if (all > cpus) {
    text += ", of " + std::to_string(all) + " that the job has: give srun --cpus-per-task=" +
            std::to_string(all / std::max(found.launchers_here, 1U)) +
            ", which it does not take from sbatch";
  } else {
    text += ": give sbatch --cpus-per-task a higher number";
  }
  options.warnings.push_back(std::move(text));
}

void notice_inherited(const Environment& environment, Options& options) {
  std::string names;
  for (const char* const name :
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"}) {
    if (value_of(environment, name)) names += (names.empty() ? "" : ", ") + std::string(name);
  }
  if (names.empty()) return;
  const auto& found = options.surroundings;
  if (environment.contains("TORCHELASTIC_RUN_ID")) {
    names += ": those of an outer torchrun or muster, whose worker this is; workers get their own";
  } else if (!found.counts.empty()) {
    names += ": read as " + found.name + " means them, where they count " + found.counts;
  } else if (value_of(environment, "PET_NNODES")) {
    names +=
        ": not read, as they count pods, or workers of pods, where Kubeflow sets them beside "
        "PET_NNODES; workers get their own";
  } else {
    names += ": not read, workers get their own; flags and PET_ variables say how nodes meet";
  }
  options.notices.push_back(std::move(names));
}

}  // namespace muster::launcher

#include "launcher/settle.hpp"

#include "launcher/text.hpp"

#include <string_view>
#include <utility>

namespace muster::launcher {
namespace {

constexpr std::string_view kWayOut =
    "give --rdzv-backend c10d and --rdzv-endpoint HOST[:PORT] (one of the nodes, or a musterd), or "
    "else --master-addr HOST, the same on all nodes";

/// As the attendance carries it.
constexpr std::size_t kLongestId = 512;

/// `--nnodes 2`, for a message.
std::string nnodes_of(const Options& options) {
  const auto& nnodes = options.asked.nnodes;
  return nnodes ? nnodes->origin + " " + nnodes->value : "--nnodes 1";
}

Result<void> check_sizes(const Options& options) {
  const auto& job = options.job;
  if (job.max_nodes / job.node_step * job.node_step >= job.min_nodes) return {};
  return fail(Errc::InvalidArgument,
              options.asked.nnodes->origin + ": " + in_quotes(options.asked.nnodes->value) +
                  ": no multiple of " + std::to_string(job.node_step) + " lies between " +
                  std::to_string(job.min_nodes) + " and " + std::to_string(job.max_nodes));
}

bool is_static(const Options& options) {
  return !options.asked.backend || options.asked.backend->value == RdzvBackend::Static;
}

Result<void> stand_alone(Options& options) {
  if (options.job.min_nodes > 1) {
    return fail(Errc::InvalidArgument, "--standalone is one node, but " + nnodes_of(options) +
                                           " asks for more: leave --standalone out, and " +
                                           std::string(kWayOut));
  }
  if (options.job.max_nodes > 1) {
    options.notices.push_back("--standalone is one node: " + nnodes_of(options) + " counts as 1");
    options.job.max_nodes = 1;
  }
  if (options.master.port != 0) {
    options.notices.push_back("--standalone takes a free port: port " +
                              std::to_string(options.master.port) + " is not used");
    options.master.port = 0;
  }
  if (options.asked.endpoint) {
    options.notices.push_back("--standalone meets nobody: " + options.asked.endpoint->origin +
                              " has no effect");
  }
  return {};
}

/// The endpoint that was given, or, of a static rendezvous, the master's.
std::optional<Asked<Endpoint>> endpoint_of(const Options& options) {
  const auto& asked = options.asked;
  const std::uint16_t usual_port = is_static(options) ? kStaticPort : kC10dPort;
  if (asked.endpoint) {
    return Asked<Endpoint>{*parse_endpoint(asked.endpoint->value, usual_port),
                           asked.endpoint->origin};
  }
  if (!is_static(options) || (!asked.master_addr && !asked.master_port)) return std::nullopt;
  Endpoint endpoint = options.master;
  if (!asked.master_port) endpoint.port = kStaticPort;
  return Asked<Endpoint>{endpoint,
                         asked.master_addr ? asked.master_addr->origin : asked.master_port->origin};
}

/// A static job has all its nodes from the start, as with torchrun.
void fix_size(Options& options) {
  if (options.job.min_nodes == options.job.max_nodes) return;
  options.notices.push_back(nnodes_of(options) + ": a static job starts with all " +
                            std::to_string(options.job.max_nodes) +
                            " nodes; --rdzv-backend c10d makes do with " +
                            std::to_string(options.job.min_nodes));
  options.job.min_nodes = options.job.max_nodes;
  options.job.node_step = 1;
}

void meet(Options& options, const Asked<Endpoint>& endpoint) {
  const auto& asked = options.asked;
  options.meeting = Meeting{.server = endpoint.value,
                            .origin = endpoint.origin,
                            .is_host = {},
                            .is_elsewhere = asked.is_elsewhere};
  if (asked.is_host) options.meeting->is_host = asked.is_host->value;

  constexpr auto kStaticPatience = std::chrono::seconds(900);  // As torchrun's.
  if (is_static(options)) {
    fix_size(options);
    options.job.store_on_server = options.worker_store == WorkerStore::Agent;
    options.job.join_timeout = asked.timeout ? asked.timeout->value : kStaticPatience;
  } else {
    if (asked.timeout) {
      options.notices.push_back(asked.timeout->origin +
                                " has no meaning for c10d: join_timeout has");
    }
    for (const auto& master : {asked.master_addr, asked.master_port}) {
      if (!master) continue;
      options.notices.push_back(master->origin +
                                " has no meaning for c10d, where each round has a store of its "
                                "own: --local-addr names this node's address");
    }
  }
  if (asked.join_timeout) options.job.join_timeout = asked.join_timeout->value;

  // Every node must give the same: torchrun's usual one, never a random one.
  if (asked.rdzv_id && asked.rdzv_id->value.empty()) {
    options.notices.push_back(asked.rdzv_id->origin +
                              " is empty: the job's id is 'none', the same on all nodes");
  }
  options.rdzv_id = asked.rdzv_id && !asked.rdzv_id->value.empty() ? asked.rdzv_id->value : "none";
}

void be_alone(Options& options) {
  const auto& asked = options.asked;
  if (asked.rdzv_id && asked.rdzv_id->value.empty()) {
    options.notices.push_back(asked.rdzv_id->origin + " is empty: the job gets a random id");
  } else if (asked.rdzv_id) {
    options.rdzv_id = asked.rdzv_id->value;
  }
  for (const auto& origin : asked.for_several) {
    options.notices.push_back(origin + " has no meaning for a node that meets nobody");
  }
}

}  // namespace

Result<void> settle_meeting(Options& options) {
  if (const auto legal = check_sizes(options); !legal) return legal;
  const auto& id = options.asked.rdzv_id;
  if (id && id->value.size() > kLongestId) {
    return fail(Errc::InvalidArgument, id->origin + ": " + in_quotes(id->value) + " has " +
                                           std::to_string(id->value.size()) +
                                           " bytes: give at most " + std::to_string(kLongestId));
  }
  if (options.standalone) {
    const auto alone = stand_alone(options);
    if (alone) be_alone(options);
    return alone;
  }

  const bool several = options.job.max_nodes > 1;
  const auto endpoint = endpoint_of(options);
  if (several && !endpoint) {
    return fail(Errc::InvalidArgument,
                nnodes_of(options) + ": the nodes have no place to meet: " + std::string(kWayOut));
  }
  if (several && endpoint->value.port == 0) {
    return fail(Errc::InvalidArgument,
                endpoint->origin +
                    ": port 0 is any free one, which the other nodes could not find: give one");
  }
  const bool meets = several || (endpoint && !is_static(options) && endpoint->value.port != 0);
  if (meets) {
    meet(options, *endpoint);
    return {};
  }
  if (options.asked.endpoint && is_static(options)) options.master = endpoint->value;
  be_alone(options);
  return {};
}

}  // namespace muster::launcher

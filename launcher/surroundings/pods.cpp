#include "base/text.hpp"
#include "launcher/surroundings/family.hpp"
#include "launcher/text.hpp"
#include "launcher/values.hpp"

#include <algorithm>
#include <array>
#include <cctype>

/// Pods and machines of a cloud, each with one launcher.
namespace muster::launcher {
namespace {

constexpr std::string_view kHostName = "HOSTNAME";  // A pod's: that of its spec.

bool is_all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// `job-worker` and `3` of `job-worker-3`.
struct Numbered {
  std::string name;
  std::string number;
};
std::optional<Numbered> numbered(const std::string& host) {
  const auto dash = host.rfind('-');
  if (dash == std::string::npos || !is_all_digits(host.substr(dash + 1))) return std::nullopt;
  return Numbered{host.substr(0, dash), host.substr(dash + 1)};
}

/// A controller that says all there is in variables of its own.
struct Controller {
  std::string_view name;
  bool (*is_it)(const Reader& reader);
  std::string_view size;
  std::string_view rank;
  std::string_view host;  ///< The first word counts.
  std::string_view port;
  std::string_view job;
  std::string_view slots;
  std::string_view counts;  ///< RANK, WORLD_SIZE ...: what, where they are its own.
};

bool has_rank_and_master(const Reader& reader) {
  return reader.has("RANK") && reader.has("WORLD_SIZE") && reader.has("MASTER_ADDR") &&
         !reader.has("LOCAL_RANK");
}

bool is_sky_pilot(const Reader& reader) { return reader.has("SKYPILOT_NODE_IPS"); }
bool is_leader_worker_set(const Reader& reader) { return reader.has("LWS_LEADER_ADDRESS"); }
/// Volcano's pytorch plug-in.
bool is_volcano(const Reader& reader) {
  return has_rank_and_master(reader) &&
         (reader.has("VC_TASK_INDEX") || reader.has("VK_TASK_INDEX"));
}
/// A PyTorchJob's pods are JOB-master-0 and JOB-worker-N. Operators that say PET_NNODES as well
/// mean workers by WORLD_SIZE, and need not be read.
bool is_kubeflow(const Reader& reader) {
  if (reader.has("PET_NNODES")) return false;
  const auto host = reader.text(kHostName);
  const auto pod = host ? numbered(host->value) : std::nullopt;
  return has_rank_and_master(reader) && pod &&
         (pod->name.ends_with("-master") || pod->name.ends_with("-worker"));
}

/// SkyPilot: "Environment variables"; LeaderWorkerSet: "Labels, annotations and environment
/// variables"; Volcano: "pytorch plugin"; Kubeflow Training Operator: pkg/controller.v1/pytorch.
constexpr std::array kControllers{
    Controller{"SkyPilot", is_sky_pilot, "SKYPILOT_NUM_NODES", "SKYPILOT_NODE_RANK",
               "SKYPILOT_NODE_IPS", "", "SKYPILOT_TASK_ID", "SKYPILOT_NUM_GPUS_PER_NODE", ""},
    Controller{"LeaderWorkerSet", is_leader_worker_set, "LWS_GROUP_SIZE", "LWS_WORKER_INDEX",
               "LWS_LEADER_ADDRESS", "", "LWS_LEADER_ADDRESS", "", ""},
    Controller{"Volcano", is_volcano, "WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT", "", "",
               "pods"},
    Controller{"Kubeflow", is_kubeflow, "WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT", "", "",
               "pods"},
};

/// `job-1.service.namespace.svc`, as a pod's /etc/hosts has it where the pods have a headless
/// service: what stands behind the pod's own name, with its dot; empty: there is none.
std::string domain_of(const std::string& host, const Reader& reader) {
  const auto hosts = reader.file("/etc/hosts");
  for (const auto line : lines_of(hosts)) {
    for (std::string_view rest = line; !rest.empty();) {
      const auto end = std::min(rest.find_first_of(" \t"), rest.size());
      const auto name = rest.substr(0, end);
      if (name.starts_with(host + ".")) return std::string(name.substr(host.size()));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return {};
}

}  // namespace

std::optional<Surroundings> node_of_cluster(Reader& reader) {
  const auto controller = std::ranges::find_if(
      kControllers, [&reader](const Controller& each) { return each.is_it(reader); });
  if (controller == kControllers.end()) return std::nullopt;

  Surroundings found;
  found.name = controller->name;
  found.whole = found.name + "'s job";
  found.launchers = reader.number(controller->size);
  if (found.launchers) found.machines = found.launchers->value;
  found.node_rank = reader.number(controller->rank);
  found.is_elsewhere = found.node_rank && found.node_rank->value > 0;
  found.first_host = reader.text(controller->host);
  if (auto& host = found.first_host) {
    const auto text = trimmed(host->value);
    host->value = text.substr(0, text.find_first_of(" \t\r\n,"));
    // As older operators tell the master itself.
    if (host->value == "localhost") {
      if (const auto own = reader.text(kHostName)) host->value = own->value;
    }
  }
  if (const auto port = reader.port(controller->port)) {
    found.port = port->value;
    found.is_static = true;
  }
  found.job_id = reader.text(controller->job);
  found.slots = reader.number(controller->slots);
  found.counts = controller->counts;
  found.how_to_meet = "give --rdzv-endpoint HOST, the same on all nodes";
  return found;
}

/// The pods of an indexed Job, one of a JobSet included: how many there are, no variable says.
std::optional<Surroundings> pod_of_job(Reader& reader) {
  const auto index = reader.number("JOB_COMPLETION_INDEX");
  if (!index) return std::nullopt;
  Surroundings found{.name = "Kubernetes", .whole = "Kubernetes' job"};
  found.node_rank = index;
  found.is_elsewhere = index->value > 0;
  found.how_to_meet =
      "give --rdzv-endpoint HOST, the same on all pods: FIRST_POD.SERVICE, where SERVICE is the "
      "pods' headless service (spec.subdomain)";
  const auto host = reader.text(kHostName);
  const auto pod = host ? numbered(host->value) : std::nullopt;
  if (!pod || pod->number != std::to_string(index->value)) return found;
  found.job_id = {pod->name, host->origin};
  auto domain = domain_of(host->value, reader);
  if (const auto set = reader.text("JOBSET_NAME"); set && domain.empty()) domain = "." + set->value;
  if (!domain.empty()) found.first_host = {pod->name + "-0" + domain, host->origin};
  return found;
}

}  // namespace muster::launcher

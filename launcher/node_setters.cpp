#include "base/exit_status.hpp"
#include "base/text.hpp"
#include "launcher/rdzv_conf.hpp"
#include "launcher/setter.hpp"
#include "launcher/text.hpp"
#include "launcher/values.hpp"

#include <array>
#include <csignal>
#include <limits>

namespace muster::launcher {
namespace {

constexpr std::string_view kTime =
    "seconds (30), or an integer with a unit (500ms, 30s, 5m, 1h), at most a year";

Result<void> set_nnodes(Options& options, const Context& context) {
  const auto nodes = parse_nodes(context.given.value);
  if (!nodes) {
    return refuse(context.given, "a number of nodes",
                  "N, MIN:MAX or MIN:MAX:STEP, where 0 < MIN <= MAX <= " +
                      std::to_string(kMaxNodes) + " and 0 < STEP");
  }
  options.asked.nnodes = {context.given.value, context.given.origin};
  options.job.min_nodes = nodes->min;
  options.job.max_nodes = nodes->max;
  options.job.node_step = nodes->step;
  return {};
}

Result<void> set_node_rank(Options& options, const Context& context) {
  const auto rank = parse_integer(context.given.value);
  if (!rank || *rank < 0 || *rank >= kMaxNodes) {
    return refuse(context.given, "a node rank", "an integer from 0, below the number of nodes");
  }
  // The table of flags has --nnodes first.
  if (*rank >= options.job.max_nodes) {
    const std::string most = std::to_string(options.job.max_nodes);
    return fail(Errc::InvalidArgument,
                context.given.origin + ": " + in_quotes(context.given.value) +
                    ": the job has at most " + most + (most == "1" ? " node" : " nodes") +
                    " (--nnodes), so give " +
                    (most == "1" ? "0" : "0 to " + std::to_string(options.job.max_nodes - 1)));
  }
  options.node_rank = NodeRank{static_cast<std::uint32_t>(*rank)};
  return {};
}

Result<void> set_rdzv_backend(Options& options, const Context& context) {
  const std::string& text = context.given.value;
  if (text.empty()) return {};  // As a variable that stands for nothing.
  if (text == "static") {
    options.asked.backend = {RdzvBackend::Static, context.given.origin};
  } else if (text == "c10d") {
    options.asked.backend = {RdzvBackend::C10d, context.given.origin};
  } else if (text == "etcd" || text == "etcd-v2") {
    return fail(Errc::InvalidArgument,
                context.given.origin + ": " + in_quotes(text) +
                    " is not needed here: give c10d, with --rdzv-endpoint naming one of the nodes "
                    "or a musterd");
  } else {
    return refuse(context.given, "a way to meet that muster has", "c10d or static");
  }
  return {};
}

Result<void> set_rdzv_endpoint(Options& options, const Context& context) {
  const std::string& text = context.given.value;
  if (text.empty()) return {};
  constexpr std::uint16_t kAnyPort = 1;
  if (!is_host_text(text) || !parse_endpoint(text, kAnyPort)) {
    return refuse(
        context.given, "an endpoint",
        "HOST or HOST:PORT, a name or an address, IPv6 in brackets: [fe80::1%eth0]:29400");
  }
  options.asked.endpoint = {text, context.given.origin};
  return {};
}

Result<void> set_rdzv_conf(Options& options, const Context& context) {
  return apply_rdzv_conf(context.given, options);
}

Result<void> set_local_addr(Options& options, const Context& context) {
  std::string text = context.given.value;
  if (text.empty()) return {};
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  const auto endpoint = parse_endpoint(text, 0);
  if (!is_host_text(text) || !endpoint || endpoint->host != text) {
    return refuse(context.given, "an address", "a host name or an address, without a port");
  }
  options.local_addr = text;
  options.asked.for_several.push_back(context.given.origin);
  return {};
}

Result<void> set_token_file(Options& options, const Context& context) {
  if (context.given.value.empty()) return refuse(context.given, "a file", "the path of one");
  options.token_file = context.given.value;
  options.asked.for_several.push_back(context.given.origin);
  return {};
}

Result<void> set_lease(Options& options, const Context& context) {
  const auto time = parse_time(context.given.value);
  if (!time || *time < kMinLease || *time > kMaxLease) {
    return refuse(context.given, "a lease",
                  "a time from 500ms to 1h: seconds (10), or an integer with a unit");
  }
  options.job.lease = *time;
  options.asked.for_several.push_back(context.given.origin);
  return {};
}

Result<void> set_prefer(Options& options, const Context& context) {
  const auto number = parse_integer(context.given.value);
  const auto& job = options.job;  // The table of flags has --nnodes first.
  if (!number || *number < job.min_nodes || *number > job.max_nodes) {
    return refuse(context.given, "a number of nodes that --nnodes allows",
                  job.min_nodes == job.max_nodes
                      ? std::to_string(job.min_nodes)
                      : "an integer from " + std::to_string(job.min_nodes) + " to " +
                            std::to_string(job.max_nodes));
  }
  options.job.prefer = static_cast<std::uint32_t>(*number);
  options.asked.for_several.push_back(context.given.origin);
  return {};
}

Result<void> set_scale_up(Options& options, const Context& context) {
  const std::string& text = context.given.value;
  if (text != "now" && text != "checkpoint" && text != "never")
    return refuse(context.given, "a time to take nodes in", "now, checkpoint or never");
  options.job.scale_up = text == "now"          ? ScaleUp::Now
                         : text == "checkpoint" ? ScaleUp::Checkpoint
                                                : ScaleUp::Never;
  options.asked.for_several.push_back(context.given.origin);
  return {};
}

Result<void> set_restart_backoff(Options& options, const Context& context) {
  const auto time = parse_time(context.given.value);
  if (!time) return refuse(context.given, "a time", kTime);
  options.job.restart_backoff = *time;
  return {};
}

Result<void> set_max_restarts_without_progress(Options& options, const Context& context) {
  const auto number = parse_integer(context.given.value);
  if (!number || *number < 2 || *number > std::numeric_limits<std::int32_t>::max()) {
    return refuse(context.given, "a number of attempts to compare",
                  "2 or more (to end the job at its first failure, --max-restarts 0)");
  }
  options.job.max_restarts_without_progress = static_cast<std::uint32_t>(*number);
  return {};
}

Result<void> set_store_allow(Options& options, const Context& context) {
  options.store_allow.clear();
  for (const std::string_view part : split(context.given.value, ',')) {
    const std::string_view text = trimmed(part);
    if (text.empty() && context.given.value.empty()) break;
    const auto network = store::parse_network(std::string(text));
    if (!network) {
      return refuse({.value = std::string(text), .origin = context.given.origin}, "a network",
                    "10.0.0.0/8, fd00::/8, an address, or any");
    }
    options.store_allow.push_back(*network);
  }
  options.asked.for_several.push_back(context.given.origin);
  return {};
}

Result<void> set_port_range(Options& options, const Context& context) {
  const std::string_view text = context.given.value;
  const auto dash = text.find('-', 1);
  const auto low = parse_integer(text.substr(0, dash));
  const auto high =
      parse_integer(dash == std::string_view::npos ? std::string_view() : text.substr(dash + 1));
  constexpr int kHighest = std::numeric_limits<std::uint16_t>::max();
  if (!low || !high || *low < 1 || *high > kHighest || *low > *high) {
    return refuse(context.given, "a range of ports", "LOW-HIGH, from 1 to 65535: 29500-29599");
  }
  options.port_range =
      PortRange{static_cast<std::uint16_t>(*low), static_cast<std::uint16_t>(*high)};
  return {};
}

Result<void> set_iface(Options& options, const Context& context) {
  const std::string& text = context.given.value;
  constexpr std::size_t kLongest = 15;  // The kernel's.
  const bool is_network = text.find('/') != std::string::npos;
  if (is_network ? !store::parse_network(text)
                 : text.empty() || text.size() > kLongest || !is_host_text(text)) {
    return refuse(context.given, "an interface",
                  "its name (eth0), a network in which it has an address (10.0.0.0/8), or auto");
  }
  options.iface = text;
  options.asked.for_several.push_back(context.given.origin);
  return {};
}

Result<void> set_preempt_command(Options& options, const Context& context) {
  if (context.given.value.empty()) return {};
  options.preemption.command = context.given.value;
  options.preemption.is_asked_for = true;
  return {};
}

Result<void> set_preempt_signal(Options& options, const Context& context) {
  const auto signal = parse_signal(context.given.value);
  if (!signal || *signal == SIGKILL || *signal == SIGSTOP) {
    return refuse(context.given, "a signal that a worker can catch",
                  "a name or a number: SIGTERM, USR1, 10");
  }
  options.preemption.signal = *signal;
  options.job.preempt_signal = static_cast<std::uint32_t>(*signal);
  options.preemption.is_asked_for = true;
  return {};
}

Result<void> set_preempt_deadline(Options& options, const Context& context) {
  const auto time = parse_time(context.given.value);
  if (!time) return refuse(context.given, "a time", kTime);
  options.preemption.asked_deadline = {*time, context.given.origin};
  options.preemption.deadline = options.job.preempt_deadline = *time;
  options.preemption.is_asked_for = true;
  return {};
}

constexpr std::array kSetters{
    Setter{"nnodes", set_nnodes},
    Setter{"node-rank", set_node_rank},
    Setter{"rdzv-backend", set_rdzv_backend},
    Setter{"rdzv-endpoint", set_rdzv_endpoint},
    Setter{"rdzv-conf", set_rdzv_conf},
    Setter{"local-addr", set_local_addr},
    Setter{"token-file", set_token_file},
    Setter{"lease", set_lease},
    Setter{"prefer", set_prefer},
    Setter{"scale-up", set_scale_up},
    Setter{"restart-backoff", set_restart_backoff},
    Setter{"max-restarts-without-progress", set_max_restarts_without_progress},
    Setter{"store-allow", set_store_allow},
    Setter{"port-range", set_port_range},
    Setter{"iface", set_iface},
    Setter{"preempt-command", set_preempt_command},
    Setter{"preempt-signal", set_preempt_signal},
    Setter{"preempt-deadline", set_preempt_deadline},
};

}  // namespace

std::span<const Setter> node_setters() { return kSetters; }

}  // namespace muster::launcher

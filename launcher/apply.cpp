#include "launcher/apply.hpp"

#include "base/assert.hpp"
#include "launcher/setter.hpp"
#include "launcher/text.hpp"
#include "launcher/values.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace muster::launcher {
namespace {

constexpr std::int64_t kMaxWorkers = std::int64_t{kMaxLocalRank} + 1;
constexpr std::int64_t kMaxRestarts = std::numeric_limits<std::int32_t>::max();

std::uint32_t gpus(const Context& context) {
  const std::uint32_t devices = context.machine.nvidia_devices();
  const auto visible = context.environment.find("CUDA_VISIBLE_DEVICES");
  return visible == context.environment.end() ? devices : visible_devices(visible->second, devices);
}

/// It is read before any flag is applied.
Result<void> set_config(Options&, const Context&) { return {}; }

Result<void> set_explain(Options& options, const Context& context) {
  options.explain = context.given.value != "0";
  return {};
}

Result<void> set_nproc(Options& options, const Context& context) {
  const std::string& text = context.given.value;
  if (const auto number = parse_integer(text)) {
    if (*number < 1 || *number > kMaxWorkers) {
      return refuse(context.given, "a number of workers",
                    "an integer from 1 to " + std::to_string(kMaxWorkers));
    }
    options.nproc = static_cast<std::uint32_t>(*number);
    options.nproc_origin = context.given.origin + " " + std::to_string(*number);
    return {};
  }
  if (text != "gpu" && text != "cpu" && text != "auto") {
    return refuse(context.given, "a number of workers",
                  "an integer from 1 to " + std::to_string(kMaxWorkers) +
                      ", gpu, cpu, or auto (the GPUs, or else the processors)");
  }
  const std::uint32_t found = text == "cpu" ? 0 : gpus(context);
  if (text == "gpu" && found == 0) {
    const auto visible = context.environment.find("CUDA_VISIBLE_DEVICES");
    std::string why = "no /dev/nvidia0, /dev/nvidia1... here";
    if (visible != context.environment.end()) {
      why += " that CUDA_VISIBLE_DEVICES=" + in_quotes(visible->second) + " shows";
    }
    return fail(Errc::InvalidArgument, context.given.origin + ": no GPU was found: " + why +
                                           "; give a number, cpu or auto");
  }
  options.nproc = found > 0 ? found : std::max(context.machine.cpus(), 1U);
  options.nproc_origin = context.given.origin + " " + text;
  return {};
}

Result<void> set_standalone(Options& options, const Context& context) {
  options.standalone = context.given.value != "0";
  return {};
}

Result<void> set_master_addr(Options& options, const Context& context) {
  const std::string& text = context.given.value;
  const auto endpoint = parse_endpoint(text, 0);
  if (!endpoint || !is_host_text(text)) {
    return refuse(context.given, "an address",
                  "a host name or an address; the port is --master-port");
  }
  if (text != endpoint->host && text != "[" + endpoint->host + "]") {
    return fail(Errc::InvalidArgument, context.given.origin + ": " + in_quotes(text) +
                                           " has a port: give it with --master-port");
  }
  options.master.host = endpoint->host;
  options.asked.master_addr = {options.master, context.given.origin};
  return {};
}

Result<void> set_master_port(Options& options, const Context& context) {
  const auto port = parse_integer(context.given.value);
  if (!port || *port < 0 || *port > std::numeric_limits<std::uint16_t>::max()) {
    return refuse(context.given, "a port", "an integer from 0 to 65535 (0: any free port)");
  }
  options.master.port = static_cast<std::uint16_t>(*port);
  options.asked.master_port = {options.master, context.given.origin};
  return {};
}

Result<void> set_rdzv_id(Options& options, const Context& context) {
  options.asked.rdzv_id = {context.given.value, context.given.origin};
  return {};
}

Result<void> set_max_restarts(Options& options, const Context& context) {
  const auto number = parse_integer(context.given.value);
  if (!number || *number < 0 || *number > kMaxRestarts) {
    return refuse(context.given, "a number of restarts",
                  "an integer from 0 to " + std::to_string(kMaxRestarts));
  }
  options.job.max_restarts = static_cast<std::uint32_t>(*number);
  return {};
}

Result<void> set_clean_shm(Options& options, const Context& context) {
  options.clean_shm = context.given.value != "0";
  return {};
}

Result<void> set_track_steps(Options& options, const Context& context) {
  options.track_steps = context.given.value != "0";
  return {};
}

Result<void> set_role(Options& options, const Context& context) {
  options.role = context.given.value;
  return {};
}

/// The table of flags has --run-path first: it wins over the others.
Result<void> set_kind(Options& options, const Context& context, ProgramKind kind) {
  const bool on = context.given.value != "0";
  if (on && options.program_kind != ProgramKind::RunPath) options.program_kind = kind;
  return {};
}
Result<void> set_module(Options& options, const Context& context) {
  return set_kind(options, context, ProgramKind::Module);
}
Result<void> set_no_python(Options& options, const Context& context) {
  if (context.given.value != "0" && options.program_kind == ProgramKind::Module) {
    return fail(Errc::InvalidArgument,
                context.given.origin +
                    " and --module (or PET_MODULE) exclude each other: a module needs Python");
  }
  return set_kind(options, context, ProgramKind::NoPython);
}
Result<void> set_run_path(Options& options, const Context& context) {
  return set_kind(options, context, ProgramKind::RunPath);
}

Result<void> set_pass_local_rank(Options& options, const Context& context) {
  if (context.given.value == "underscore") {
    options.pass_local_rank = PassLocalRank::Underscore;
  } else if (context.given.value == "dash") {
    options.pass_local_rank = PassLocalRank::Dash;
  } else {
    return refuse(context.given, "a spelling",
                  "underscore (--local_rank=N) or dash (--local-rank=N)");
  }
  return {};
}

Result<void> set_worker_store(Options& options, const Context& context) {
  if (context.given.value == "agent") {
    options.worker_store = WorkerStore::Agent;
  } else if (context.given.value == "torch") {
    options.worker_store = WorkerStore::Torch;
  } else {
    return refuse(context.given, "a host of the store", "agent (muster itself) or torch (rank 0)");
  }
  return {};
}

Result<void> set_log_dir(Options& options, const Context& context) {
  if (!context.given.value.empty()) options.log_dir = context.given.value;
  return {};
}

Result<void> set_streams(StreamMap& streams, const Context& context) {
  auto map = parse_stream_map(context.given.value);
  if (!map) {
    return refuse(
        context.given, "a choice of streams",
        "0 (none), 1 (stdout), 2 (stderr), 3 (both), or local ranks with one each: 0:3,1:2");
  }
  streams = std::move(*map);
  return {};
}
Result<void> set_redirects(Options& options, const Context& context) {
  return set_streams(options.redirects, context);
}
Result<void> set_tee(Options& options, const Context& context) {
  return set_streams(options.tee, context);
}

Result<void> set_report(Options& options, const Context& context) {
  const std::string& path = context.given.value;
  if (path == "-") {
    return refuse(context.given, "a file",
                  "a name; the workers' own output would stand around it on stdout");
  }
  options.report = path;
  options.report_origin = context.given.origin;
  return {};
}

Result<void> set_log_level(Options& options, const Context& context) {
  const auto level = parse_log_level(context.given.value);
  if (!level) {
    return refuse(context.given, "a log level", "trace, debug, info, warn, error or off");
  }
  options.log_level = *level;
  return {};
}

Result<void> set_monitor_interval(Options& options, const Context& context) {
  const auto seconds = parse_number(context.given.value);
  if (!seconds || !(*seconds > 0)) {
    return refuse(context.given, "an interval", "seconds above 0 (it has no meaning here)");
  }
  options.notices.push_back(context.given.origin +
                            " has no meaning here: muster waits for events, it polls nothing");
  return {};
}

Result<void> set_start_method(Options& options, const Context& context) {
  const std::string& text = context.given.value;
  // A variable's choice torchrun does not check.
  const bool checked = context.given.origin.starts_with("--");
  if (checked && text != "spawn" && text != "fork" && text != "forkserver") {
    return refuse(context.given, "a start method",
                  "spawn, fork or forkserver (it has no meaning here)");
  }
  options.notices.push_back(context.given.origin +
                            " has no meaning here: every worker is a process of its own");
  return {};
}

constexpr std::array kSetters{
    Setter{"explain", set_explain},
    Setter{"config", set_config},
    Setter{"nproc-per-node", set_nproc},
    Setter{"standalone", set_standalone},
    Setter{"master-addr", set_master_addr},
    Setter{"master-port", set_master_port},
    Setter{"rdzv-id", set_rdzv_id},
    Setter{"max-restarts", set_max_restarts},
    Setter{"clean-shm", set_clean_shm},
    Setter{"track-steps", set_track_steps},
    Setter{"role", set_role},
    Setter{"module", set_module},
    Setter{"no-python", set_no_python},
    Setter{"run-path", set_run_path},
    Setter{"pass-local-rank", set_pass_local_rank},
    Setter{"worker-store", set_worker_store},
    Setter{"log-dir", set_log_dir},
    Setter{"redirects", set_redirects},
    Setter{"tee", set_tee},
    Setter{"report", set_report},
    Setter{"log-level", set_log_level},
    Setter{"monitor-interval", set_monitor_interval},
    Setter{"start-method", set_start_method},
};

const Setter* setter_of(std::string_view flag) {
  for (const std::span<const Setter> setters :
       {std::span<const Setter>(kSetters), node_setters(), stop_setters(), output_setters()}) {
    const auto found = std::ranges::find(setters, flag, &Setter::flag);
    if (found != setters.end()) return &*found;
  }
  return nullptr;
}

}  // namespace

tl::unexpected<Error> refuse(const Given& given, std::string_view what, std::string_view right) {
  return fail(Errc::InvalidArgument, given.origin + ": " + in_quotes(given.value) + " is not " +
                                         std::string(what) + ": give " + std::string(right));
}

Result<void> apply(std::string_view flag, const Given& given, const Environment& environment,
                   const Machine& machine, Options& options) {
  const auto* const setter = setter_of(flag);
  MUSTER_ASSERT(setter != nullptr);
  return setter->set(options, Context{given, environment, machine});
}

bool can_apply(std::string_view flag) { return setter_of(flag) != nullptr; }

}  // namespace muster::launcher

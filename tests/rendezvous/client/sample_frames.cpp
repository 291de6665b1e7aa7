#include "tests/rendezvous/client/sample_frames.hpp"

#include <limits>

using namespace muster;
using namespace muster::rendezvous;

namespace {

/// Of a failure beside the first cause: the wire keeps so much of its evidence.
constexpr std::size_t kMostEvidence = 1000;

}  // namespace

/// Small as a rule, now and then anything up to the limit, or the limit itself.
std::uint64_t SampleFrames::number(std::uint64_t most) {
  constexpr std::uint64_t kSmall = 9;
  const auto draw = random_() % 20;
  if (draw == 0) return most;
  const auto bound = draw < 4 ? most : std::min(most, kSmall);
  return bound == std::numeric_limits<std::uint64_t>::max() ? random_() : random_() % (bound + 1);
}

std::string SampleFrames::bytes(std::size_t least, std::size_t most) {
  std::string result(least + number(most - least), '\0');
  for (char& each : result) each = static_cast<char>(random_());
  return result;
}

std::string SampleFrames::name(std::size_t least) { return bytes(least, kMaxName); }

std::string SampleFrames::text() { return bytes(0, 3000); }

RoundId SampleFrames::round() { return {.epoch = number(kMaxEpoch), .number = number(kMaxRound)}; }

Endpoint SampleFrames::endpoint() {
  return {.host = name(), .port = static_cast<std::uint16_t>(number(65535))};
}

Duration SampleFrames::duration() {
  return Duration(number(static_cast<std::uint64_t>(kMaxDuration.count())));
}

ExitStatus SampleFrames::status() {
  return {.code = static_cast<int>(number(255)),
          .signal = static_cast<int>(number(127)),
          .core_dumped = coin()};
}

std::vector<std::string> SampleFrames::names(std::size_t most) {
  std::vector<std::string> result(number(most));
  for (auto& each : result) each = bytes(0, 60);
  return result;
}

std::vector<Incarnation> SampleFrames::incarnations() {
  std::vector<Incarnation> result(number(100));
  for (auto& each : result) each.value = bytes(1, 64);
  return result;
}

std::vector<Victim> SampleFrames::victims() {
  std::vector<Victim> result(number(1000));
  for (auto& each : result) each = {{static_cast<std::uint32_t>(number(UINT32_MAX))}, status()};
  return result;
}

JobSettings SampleFrames::settings() {
  JobSettings result;
  result.min_nodes = static_cast<std::uint32_t>(number(UINT32_MAX));
  result.max_nodes = static_cast<std::uint32_t>(number(UINT32_MAX));
  result.node_step = static_cast<std::uint32_t>(number(UINT32_MAX));
  result.max_restarts = static_cast<std::uint32_t>(number(UINT32_MAX));
  result.lease = duration();
  if (coin()) result.last_call = duration();
  result.join_timeout = duration();
  if (coin()) result.prefer = static_cast<std::uint32_t>(number(UINT32_MAX));
  result.scale_up = static_cast<ScaleUp>(number(2));
  result.restart_backoff = duration();
  result.store_on_server = coin();
  result.preempt_signal = static_cast<std::uint32_t>(number(64));
  result.preempt_deadline = duration();
  if (coin()) result.max_restarts_without_progress = static_cast<std::uint32_t>(number(UINT32_MAX));
  for (auto count = number(5); count > 0; --count) result.others["x" + bytes(0, 20)] = name();
  return result;
}

WorkerFailure SampleFrames::failure() {
  WorkerFailure result;
  result.rank = {static_cast<std::uint32_t>(number(UINT32_MAX))};
  result.local_rank = {static_cast<std::uint32_t>(number(UINT32_MAX))};
  result.node_rank = {static_cast<std::uint32_t>(number(UINT32_MAX))};
  result.node = name();
  result.pid = static_cast<int>(number(std::numeric_limits<int>::max()));
  if (coin()) result.status = status();
  result.user_error = coin();
  result.cause = static_cast<Cause>(number(5));
  result.detail = bytes(0, kMostEvidence);
  result.traceback = bytes(0, kMostEvidence);
  for (auto count = number(20); count > 0; --count) result.stderr_lines.push_back(bytes(0, 100));
  result.log_file = name();
  result.hint = name();
  result.phase = bytes(0, kMaxPhase);
  if (coin()) result.step = number(UINT64_MAX);
  result.ended_at = static_cast<std::int64_t>(number(INT64_MAX));
  return result;
}

Keep SampleFrames::keep() {
  Keep result;
  if (coin()) {
    const auto max = 1 + number(kMaxNodes - 1);
    result.sizes.emplace(1 + number(max - 1), max);
  }
  result.drained = coin();
  result.ended = coin();
  return result;
}

Held SampleFrames::held() {
  Held result;
  if (coin()) result.round = round();
  result.empty = coin();
  result.unbroken = coin();
  result.succeeded = coin();
  result.started = coin();
  result.nodes = static_cast<std::uint32_t>(number(UINT32_MAX));
  result.highest = round();
  result.attempts = static_cast<std::uint32_t>(number(UINT32_MAX));
  result.restarts = static_cast<std::uint32_t>(number(UINT32_MAX));
  result.gone = incarnations();
  result.kept = keep();
  result.node_rank = {static_cast<std::uint32_t>(number(UINT32_MAX))};
  result.excluded = names(50);
  if (coin()) result.verdict = verdict();
  result.acknowledged = coin();
  result.stopped = coin();
  result.excused = coin();
  result.stuck = coin();
  result.best_step = number(UINT64_MAX);
  result.fruitless = static_cast<std::uint32_t>(number(UINT32_MAX));
  for (auto count = number(5); count > 0; --count) result.failures.push_back(failure());
  result.victims = victims();
  return result;
}

Hello SampleFrames::hello() {
  Hello result;
  result.job = name();
  result.launch_tag = name();
  result.incarnation = {name(1)};
  result.machine = name();
  result.name = name();
  result.version = name();
  result.slots = static_cast<std::uint32_t>(1 + number(kMaxSlots - 1));
  result.role = name();
  if (coin()) result.node_rank = {static_cast<std::uint32_t>(number(kMaxNodes))};
  result.topology = name();
  result.store = endpoint();
  result.store_is_fixed = coin();
  result.addresses = names(kMaxAddresses);
  result.settings = settings();
  result.hosts_server = coin();
  result.held = held();
  result.ping = number(UINT64_MAX);
  return result;
}

Farewell SampleFrames::farewell() {
  Farewell result;
  result.job = name();
  result.secret = name();
  if (coin()) result.round = round();
  result.reason = text();
  result.preempted = coin();
  return result;
}

Assignment SampleFrames::assignment() {
  Assignment result;
  const auto any = [this] { return static_cast<std::uint32_t>(number(UINT32_MAX)); };
  result.round = round();
  result.attempt = any();
  result.restarts = any();
  result.max_restarts = any();
  result.best_step = number(UINT64_MAX);
  result.fruitless = any();
  result.world_size = any();
  result.rank_offset = {any()};
  result.local_rank_offset = {any()};
  result.local_world_size = any();
  result.node_rank = {any()};
  result.nodes = any();
  result.role_rank_offset = any();
  result.role_world_size = any();
  result.master = endpoint();
  result.store_on_server = coin();
  result.secret = name();
  result.admitted = names(1000);
  result.excluded = names(50);
  return result;
}

Verdict SampleFrames::verdict() {
  Verdict result;
  result.exit_code = static_cast<int>(number(255));
  result.summary = text();
  if (coin()) result.cause = failure();
  for (auto count = number(10); count > 0; --count) result.others.push_back(failure());
  result.victims = victims();
  result.attempts = static_cast<std::uint32_t>(number(UINT32_MAX));
  result.restarts = static_cast<std::uint32_t>(number(UINT32_MAX));
  result.max_restarts = static_cast<std::uint32_t>(number(UINT32_MAX));
  result.alone = coin();
  if (coin()) result.round = round();
  return result;
}

std::vector<std::pair<std::string, ClientFrame>> SampleFrames::client() {
  std::vector<std::pair<std::string, ClientFrame>> frames;
  const auto report = [&](const char* kind, Report what) {
    frames.emplace_back(kind, AgentMessage(std::move(what)));
  };
  const auto small = [this] { return static_cast<std::uint32_t>(number(UINT32_MAX)); };
  frames.emplace_back("open", Open{name(), bytes(kMinNonce, kMaxNonce)});
  frames.emplace_back("greeting", Greeting{hello(), name()});
  frames.emplace_back("parting", Parting{farewell(), name()});
  frames.emplace_back("unproven", Unproven{name(), text()});
  frames.emplace_back(
      "ping", AgentMessage(Ping{number(UINT64_MAX), number(UINT64_MAX), number(UINT64_MAX)}));
  report("acknowledged", Acknowledged{round()});
  report("unreachable", Unreachable{round(), text()});
  report("started", Started{round()});
  report("failed", Failed{round(), failure(), small()});
  report("succeeded", Succeeded{round()});
  report("stopped", Stopped{round()});
  report("empty", Empty{round(), victims(), endpoint()});
  Stuck stuck{round(), {}};
  for (auto count = number(50); count > 0; --count) {
    stuck.pids.push_back(static_cast<int>(1 + number(4194303)));
  }
  report("stuck", std::move(stuck));
  report("leaving", Leaving{static_cast<int>(number(127)), coin()});
  report("verdict_seen", VerdictSeen{});
  report("notice", Notice{text(), duration()});
  report("saving", Saving{round(), small()});
  report("store_refused", StoreRefused{round(), name()});
  Progress progress{round(), {}};
  for (auto count = number(20); count > 0; --count) {
    progress.workers.push_back({.rank = {small()},
                                .step = number(UINT64_MAX),
                                .saves = number(UINT64_MAX),
                                .phase = bytes(0, kMaxPhase),
                                .quiet = duration()});
  }
  report("progress", std::move(progress));
  return frames;
}

std::vector<std::pair<std::string, ServerFrame>> SampleFrames::server() {
  std::vector<std::pair<std::string, ServerFrame>> frames;
  const auto order = [&](const char* kind, Order what) {
    Directive directive{number(UINT64_MAX), std::nullopt, std::move(what)};
    if (coin()) directive.right = duration();
    frames.emplace_back(kind, ServerMessage(std::move(directive)));
  };
  Challenge challenge{name(), bytes(kMinNonce, kMaxNonce), coin(), name()};
  frames.emplace_back("challenge", std::move(challenge));
  frames.emplace_back("welcome", ServerMessage(Welcome{name(), coin()}));
  frames.emplace_back("refusal", ServerMessage(Refusal{text(), static_cast<int>(number(255))}));
  frames.emplace_back("parting_seen", PartingSeen{});
  frames.emplace_back("pong", ServerMessage(Pong{number(UINT64_MAX), coin()}));
  order("assignment", assignment());
  Stop stop;
  stop.round = round();
  stop.signal = static_cast<int>(number(127));
  stop.reason = text();
  stop.keep = coin();
  stop.gone = incarnations();
  stop.blameless = coin();
  order("stop", std::move(stop));
  order("verdict", verdict());
  order("prepare", Prepare{round(), text(), duration()});
  order("master_up", MasterUp{round()});
  order("keep", keep());
  Waiting waiting{text(), {}};
  if (coin()) waiting.round = round();
  frames.emplace_back("waiting", ServerMessage(std::move(waiting)));
  frames.emplace_back("dismissal", ServerMessage(Dismissal{}));
  return frames;
}

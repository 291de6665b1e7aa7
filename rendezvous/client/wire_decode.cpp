#include "muster/v1/rendezvous.pb.h"
#include "rendezvous/client/frames.hpp"
#include "rendezvous/client/named_settings.hpp"
#include "rendezvous/client/wire.hpp"

#include <cstdint>
#include <limits>
#include <utility>

namespace muster::rendezvous {
namespace {

constexpr int kMaxSignal = 127;
constexpr int kMaxExitCode = 255;
constexpr std::int64_t kNanosPerSecond = 1'000'000'000;

/// Takes the values of one frame out of what Protobuf parsed, each against its limit, and keeps the
/// first thing that was wrong.
class Reader {
 public:
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

  std::string bytes(std::string* from, std::size_t limit, std::string_view field) {
    if (from->size() > limit) {
      complain(field, "longer than the limit of " + std::to_string(limit) + " bytes");
      return {};
    }
    return std::move(*from);
  }
  std::string name(std::string* from, std::string_view field) {
    return bytes(from, kMaxName, field);
  }
  std::string text(std::string* from, std::string_view field) {
    return bytes(from, kMaxText, field);
  }

  template <class List>
  std::vector<std::string> names(List* from, std::size_t limit, std::string_view field) {
    std::vector<std::string> result;
    if (!has_room(*from, limit, field)) return result;
    result.reserve(static_cast<std::size_t>(from->size()));
    for (auto& each : *from) result.push_back(name(&each, field));
    return result;
  }

  template <class List>
  std::vector<std::string> addresses(List* from, std::size_t limit, std::string_view field) {
    std::vector<std::string> result;
    if (!has_room(*from, limit, field)) return result;
    result.reserve(static_cast<std::size_t>(from->size()));
    for (auto& each : *from) result.push_back(bytes(&each, kMaxAddress, field));
    return result;
  }

  template <class List>
  std::vector<Incarnation> incarnations(List* from, std::string_view field) {
    std::vector<Incarnation> result;
    if (!has_room(*from, kMaxNodes, field)) return result;
    result.reserve(static_cast<std::size_t>(from->size()));
    for (auto& each : *from) result.push_back({name(&each, field)});
    return result;
  }

  template <class Number>
  Number within(Number value, Number low, Number high, std::string_view field) {
    if (value >= low && value <= high) return value;
    complain(field, std::to_string(value) + ", which is not from " + std::to_string(low) + " to " +
                        std::to_string(high));
    return low;
  }

  Duration duration(const google::protobuf::Duration& from, std::string_view field) {
    constexpr std::int64_t kMaxSeconds = kMaxDuration.count() / kNanosPerSecond;
    constexpr std::int64_t kLeast = 0;
    const auto seconds = within<std::int64_t>(from.seconds(), kLeast, kMaxSeconds, field);
    const auto nanos = within<std::int64_t>(from.nanos(), 0, kNanosPerSecond - 1, field);
    return std::min<Duration>(kMaxDuration,
                              std::chrono::seconds(seconds) + std::chrono::nanoseconds(nanos));
  }

  Keep keep(const v1::Keep& from) {
    Keep result;
    if (from.has_sizes()) {
      const auto& sizes = from.sizes();
      const auto max = within<std::uint32_t>(sizes.max(), 1, kMaxNodes, "keep.sizes.max");
      result.sizes.emplace(within<std::uint32_t>(sizes.min(), 1, max, "keep.sizes.min"), max);
    }
    result.drained = from.drained();
    result.ended = from.ended();
    return result;
  }

  RoundId round(const v1::RoundId& from) {
    constexpr std::uint64_t kLeast = 0;
    return {within(from.epoch(), kLeast, kMaxEpoch, "round.epoch"),
            within(from.number(), kLeast, kMaxRound, "round.number")};
  }

  Endpoint endpoint(v1::Endpoint* from, std::string_view field) {
    constexpr std::uint32_t kMaxPort = std::numeric_limits<std::uint16_t>::max();
    Endpoint result;
    result.host = name(from->mutable_host(), field);
    result.port =
        static_cast<std::uint16_t>(within<std::uint32_t>(from->port(), 0, kMaxPort, field));
    return result;
  }

  ExitStatus status(const v1::ExitStatus& from, std::string_view field) {
    return {.code = within(from.code(), 0, kMaxExitCode, field),
            .signal = within(from.signal(), 0, kMaxSignal, field),
            .core_dumped = from.core_dumped()};
  }

  template <class List>
  std::vector<Victim> victims(const List& from, std::string_view field) {
    std::vector<Victim> result;
    if (!has_room(from, kMaxNodes, field)) return result;
    result.reserve(static_cast<std::size_t>(from.size()));
    for (const auto& each : from) {
      result.push_back({.rank = {each.rank()}, .status = status(each.status(), field)});
    }
    return result;
  }

  WorkerFailure failure(v1::WorkerFailure* from) {
    WorkerFailure result;
    result.rank = {from->rank()};
    result.local_rank = {from->local_rank()};
    result.node_rank = {from->node_rank()};
    result.node = name(from->mutable_node(), "failure.node");
    result.pid = within(from->pid(), 0, std::numeric_limits<int>::max(), "failure.pid");
    if (from->has_status()) result.status = status(from->status(), "failure.status");
    result.user_error = from->user_error();
    result.cause = cause(from->cause());
    result.detail = text(from->mutable_detail(), "failure.detail");
    result.traceback = text(from->mutable_traceback(), "failure.traceback");
    if (has_room(from->stderr_lines(), kMaxStderrLines, "failure.stderr_lines")) {
      for (auto& line : *from->mutable_stderr_lines()) {
        result.stderr_lines.push_back(bytes(&line, kMaxLine, "failure.stderr_lines"));
      }
    }
    result.log_file = bytes(from->mutable_log_file(), kMaxLine, "failure.log_file");
    result.hint = bytes(from->mutable_hint(), kMaxLine, "failure.hint");
    result.phase = bytes(from->mutable_phase(), kMaxPhase, "failure.phase");
    if (from->has_step()) result.step = from->step();
    result.ended_at = from->ended_at();
    return result;
  }

  template <class List>
  std::vector<WorkerFailure> failures(List* from, std::string_view field) {
    std::vector<WorkerFailure> result;
    if (!has_room(*from, kMaxOthers, field)) return result;
    result.reserve(static_cast<std::size_t>(from->size()));
    for (auto& each : *from) result.push_back(failure(&each));
    return result;
  }

  JobSettings settings(v1::Hello* from) {
    NamedSettings named;
    if (!has_room(from->settings(), kMaxSettings, "hello.settings")) return {};
    for (auto& each : *from->mutable_settings()) {
      auto setting = name(each.mutable_name(), "hello.settings");
      named.emplace_back(std::move(setting), name(each.mutable_value(), "hello.settings"));
    }
    auto result = from_names(named);
    if (result) return *std::move(result);
    if (!error_) error_ = std::move(result.error());
    return {};
  }

  Held held(v1::Held* from) {
    Held result;
    if (from->has_round()) result.round = round(from->round());
    result.empty = from->empty();
    result.unbroken = !from->broken();
    result.succeeded = from->succeeded();
    result.started = from->started();
    result.nodes = from->nodes();
    result.highest = round(from->highest());
    result.attempts = from->attempts();
    result.restarts = from->restarts();
    result.best_step = from->best_step();
    result.fruitless = from->fruitless();
    result.gone = incarnations(from->mutable_gone(), "hello.held.gone");
    result.kept = keep(from->kept());
    result.stuck = from->stuck();
    result.node_rank = {from->node_rank()};
    result.excluded = names(from->mutable_excluded(), kMaxNodes, "hello.held.excluded");
    if (from->has_verdict()) result.verdict = verdict(from->mutable_verdict());
    result.acknowledged = from->acknowledged();
    result.stopped = from->stopped();
    result.excused = from->excused();
    result.failures = failures(from->mutable_failures(), "hello.held.failures");
    result.victims = victims(from->victims(), "hello.held.victims");
    return result;
  }

  Hello hello(v1::Hello* from) {
    Hello result;
    result.job = name(from->mutable_job(), "hello.job");
    result.launch_tag = name(from->mutable_launch_tag(), "hello.launch_tag");
    result.incarnation = {name(from->mutable_incarnation(), "hello.incarnation")};
    if (result.incarnation.value.empty()) complain("hello.incarnation", "empty");
    result.machine = name(from->mutable_machine(), "hello.machine");
    result.name = name(from->mutable_name(), "hello.name");
    result.version = name(from->mutable_version(), "hello.version");
    result.slots = within<std::uint32_t>(from->slots(), 1, kMaxSlots, "hello.slots");
    result.role = name(from->mutable_role(), "hello.role");
    if (from->has_node_rank()) {
      result.node_rank = {
          within<std::uint32_t>(from->node_rank(), 0, kMaxNodes, "hello.node_rank")};
    }
    result.topology = name(from->mutable_topology(), "hello.topology");
    result.store = endpoint(from->mutable_store(), "hello.store");
    result.store_is_fixed = from->store_is_fixed();
    result.addresses = addresses(from->mutable_addresses(), kMaxAddresses, "hello.addresses");
    result.settings = settings(from);
    result.hosts_server = from->hosts_server();
    result.held = held(from->mutable_held());
    result.ping = from->ping();
    return result;
  }

  Progress progress(v1::Progress* from) {
    Progress result;
    result.round = round(from->round());
    if (!has_room(from->workers(), kMaxSlots, "progress.workers")) return result;
    for (auto& each : *from->mutable_workers()) {
      result.workers.push_back({.rank = {each.rank()},
                                .step = each.step(),
                                .saves = each.saves(),
                                .phase = bytes(each.mutable_phase(), kMaxPhase, "progress.phase"),
                                .quiet = duration(each.quiet(), "progress.quiet")});
    }
    return result;
  }

  Farewell farewell(v1::Farewell* from) {
    Farewell result;
    result.job = name(from->mutable_job(), "farewell.job");
    result.secret = name(from->mutable_secret(), "farewell.secret");
    if (from->has_round()) result.round = round(from->round());
    result.reason = text(from->mutable_reason(), "farewell.reason");
    result.preempted = from->preempted();
    return result;
  }

  std::string nonce(std::string* from, std::string_view field) {
    if (from->size() < kMinNonce) complain(field, "shorter than " + std::to_string(kMinNonce));
    return bytes(from, kMaxNonce, field);
  }

  Assignment assignment(v1::Assignment* from) {
    Assignment result;
    result.round = round(from->round());
    result.attempt = from->attempt();
    result.restarts = from->restarts();
    result.max_restarts = from->max_restarts();
    result.best_step = from->best_step();
    result.fruitless = from->fruitless();
    result.world_size = from->world_size();
    result.rank_offset = {from->rank_offset()};
    result.local_rank_offset = {from->local_rank_offset()};
    result.local_world_size = from->local_world_size();
    result.node_rank = {from->node_rank()};
    result.nodes = from->nodes();
    result.role_rank_offset = from->role_rank_offset();
    result.role_world_size = from->role_world_size();
    result.master = endpoint(from->mutable_master(), "assignment.master");
    result.store_on_server = from->store_on_server();
    result.secret = name(from->mutable_secret(), "assignment.secret");
    result.admitted =
        addresses(from->mutable_admitted(), kMaxNodes * kMaxAddresses, "assignment.admitted");
    result.excluded = names(from->mutable_excluded(), kMaxNodes, "assignment.excluded");
    return result;
  }

  Stop stop(v1::Stop* from) {
    Stop result;
    result.round = round(from->round());
    result.signal = within(from->signal(), 0, kMaxSignal, "stop.signal");
    result.reason = text(from->mutable_reason(), "stop.reason");
    result.keep = from->keep();
    result.gone = incarnations(from->mutable_gone(), "stop.gone");
    result.blameless = from->blameless();
    return result;
  }

  Verdict verdict(v1::Verdict* from) {
    Verdict result;
    result.exit_code = within(from->exit_code(), 0, kMaxExitCode, "verdict.exit_code");
    result.summary = text(from->mutable_summary(), "verdict.summary");
    if (from->has_cause()) result.cause = failure(from->mutable_cause());
    result.others = failures(from->mutable_others(), "verdict.others");
    result.alone = from->alone();
    if (from->has_round()) result.round = round(from->round());
    result.victims = victims(from->victims(), "verdict.victims");
    result.attempts = from->attempts();
    result.restarts = from->restarts();
    result.max_restarts = from->max_restarts();
    return result;
  }

  Prepare prepare(v1::Prepare* from) {
    Prepare result;
    result.round = round(from->round());
    result.reason = text(from->mutable_reason(), "prepare.reason");
    result.left = duration(from->left(), "prepare.left");
    return result;
  }

  template <class List>
  bool has_room(const List& list, std::size_t limit, std::string_view field) {
    if (static_cast<std::size_t>(list.size()) <= limit) return true;
    complain(field, "a list of more than " + std::to_string(limit));
    return false;
  }

 private:
  static Cause cause(v1::Cause from) {
    switch (from) {
      case v1::CAUSE_LOST_NODE:
        return Cause::LostNode;
      case v1::CAUSE_OUT_OF_MEMORY:
        return Cause::OutOfMemory;
      case v1::CAUSE_HARDWARE:
        return Cause::Hardware;
      case v1::CAUSE_OUTSIDE_SIGNAL:
        return Cause::OutsideSignal;
      case v1::CAUSE_PEER_LOSS:
        return Cause::PeerLoss;
      default:  // A newer peer's: a failure all the same.
        return Cause::WorkerError;
    }
  }

  void complain(std::string_view field, const std::string& what) {
    if (error_) return;
    error_ = Error{Errc::InvalidArgument, std::string(field) + " is " + what};
  }

  std::optional<Error> error_;
};

AgentMessage agent_message(Report report) { return AgentMessage(std::move(report)); }

/// nullopt: an unknown kind.
std::optional<ClientFrame> read(v1::ClientFrame& from, Reader& reader) {
  using Kind = v1::ClientFrame;
  switch (from.kind_case()) {
    case Kind::kOpen: {
      Open open;
      open.version = reader.name(from.mutable_open()->mutable_version(), "open.version");
      open.nonce = reader.nonce(from.mutable_open()->mutable_nonce(), "open.nonce");
      return open;
    }
    case Kind::kGreeting: {
      Greeting greeting;
      greeting.hello = reader.hello(from.mutable_greeting()->mutable_hello());
      greeting.proof = reader.name(from.mutable_greeting()->mutable_proof(), "greeting.proof");
      return greeting;
    }
    case Kind::kParting: {
      Parting parting;
      parting.farewell = reader.farewell(from.mutable_parting()->mutable_farewell());
      parting.proof = reader.name(from.mutable_parting()->mutable_proof(), "parting.proof");
      return parting;
    }
    case Kind::kUnproven: {
      auto* const to = from.mutable_unproven();
      return Unproven{reader.name(to->mutable_node(), "unproven.node"),
                      reader.text(to->mutable_reason(), "unproven.reason")};
    }
    case Kind::kPing:
      return AgentMessage(
          Ping{from.ping().number(), from.ping().memory_used(), from.ping().memory_limit()});
    case Kind::kAcknowledged:
      return agent_message(Acknowledged{reader.round(from.acknowledged().round())});
    case Kind::kUnreachable: {
      auto* const to = from.mutable_unreachable();
      return agent_message(Unreachable{reader.round(to->round()),
                                       reader.text(to->mutable_detail(), "unreachable.detail")});
    }
    case Kind::kStarted:
      return agent_message(Started{reader.round(from.started().round())});
    case Kind::kFailed: {
      Failed failed;
      failed.round = reader.round(from.failed().round());
      failed.failure = reader.failure(from.mutable_failed()->mutable_failure());
      failed.started = from.failed().started();
      return agent_message(std::move(failed));
    }
    case Kind::kSucceeded:
      return agent_message(Succeeded{reader.round(from.succeeded().round())});
    case Kind::kStopped:
      return agent_message(Stopped{reader.round(from.stopped().round())});
    case Kind::kEmpty: {
      Empty empty;
      empty.round = reader.round(from.empty().round());
      empty.victims = reader.victims(from.empty().victims(), "empty.victims");
      empty.next_store =
          reader.endpoint(from.mutable_empty()->mutable_next_store(), "empty.next_store");
      return agent_message(std::move(empty));
    }
    case Kind::kStuck: {
      Stuck stuck;
      stuck.round = reader.round(from.stuck().round());
      if (reader.has_room(from.stuck().pids(), kMaxPids, "stuck.pids")) {
        stuck.pids.assign(from.stuck().pids().begin(), from.stuck().pids().end());
      }
      return agent_message(std::move(stuck));
    }
    case Kind::kLeaving: {
      Leaving leaving;
      leaving.signal = reader.within(from.leaving().signal(), 0, kMaxSignal, "leaving.signal");
      leaving.preempted = from.leaving().preempted();
      return agent_message(leaving);
    }
    case Kind::kVerdictSeen:
      return agent_message(VerdictSeen{});
    case Kind::kNotice: {
      Notice notice;
      notice.reason = reader.text(from.mutable_notice()->mutable_reason(), "notice.reason");
      notice.left = reader.duration(from.notice().left(), "notice.left");
      return agent_message(std::move(notice));
    }
    case Kind::kSaving:
      return agent_message(Saving{reader.round(from.saving().round()), from.saving().left()});
    case Kind::kStoreRefused: {
      auto* const refused = from.mutable_store_refused();
      return agent_message(
          StoreRefused{reader.round(refused->round()),
                       reader.name(refused->mutable_address(), "store_refused.address")});
    }
    case Kind::kProgress:
      return agent_message(reader.progress(from.mutable_progress()));
    case Kind::KIND_NOT_SET:
      break;
  }
  return std::nullopt;
}

/// nullopt: an order of an unknown kind.
std::optional<Order> read(v1::Directive& from, Reader& reader) {
  switch (from.order_case()) {
    case v1::Directive::kAssignment:
      return reader.assignment(from.mutable_assignment());
    case v1::Directive::kStop:
      return reader.stop(from.mutable_stop());
    case v1::Directive::kVerdict:
      return reader.verdict(from.mutable_verdict());
    case v1::Directive::kPrepare:
      return reader.prepare(from.mutable_prepare());
    case v1::Directive::kMasterUp:
      return MasterUp{reader.round(from.master_up().round())};
    case v1::Directive::kKeep:
      return reader.keep(from.keep());
    case v1::Directive::ORDER_NOT_SET:
      break;
  }
  return std::nullopt;
}

std::optional<ServerFrame> read(v1::ServerFrame& from, Reader& reader) {
  using Kind = v1::ServerFrame;
  switch (from.kind_case()) {
    case Kind::kChallenge: {
      auto* const to = from.mutable_challenge();
      Challenge challenge;
      challenge.version = reader.name(to->mutable_version(), "challenge.version");
      challenge.nonce = reader.nonce(to->mutable_nonce(), "challenge.nonce");
      challenge.asks_token = to->asks_token();
      challenge.proof = reader.name(to->mutable_proof(), "challenge.proof");
      return challenge;
    }
    case Kind::kWelcome:
      return ServerMessage(
          Welcome{reader.name(from.mutable_welcome()->mutable_version(), "welcome.version"),
                  from.welcome().embedded()});
    case Kind::kRefusal: {
      Refusal refusal;
      refusal.message = reader.text(from.mutable_refusal()->mutable_message(), "refusal.message");
      refusal.exit_code =
          reader.within(from.refusal().exit_code(), 0, kMaxExitCode, "refusal.exit_code");
      return ServerMessage(std::move(refusal));
    }
    case Kind::kPartingSeen:
      return PartingSeen{};
    case Kind::kPong:
      return ServerMessage(Pong{from.pong().number(), from.pong().gone()});
    case Kind::kDirective: {
      auto order = read(*from.mutable_directive(), reader);
      if (!order) return std::nullopt;
      std::optional<Duration> right;
      if (from.directive().has_right()) {
        right = reader.duration(from.directive().right(), "directive.right");
      }
      return ServerMessage(Directive{from.directive().ping(), right, *std::move(order)});
    }
    case Kind::kWaiting: {
      auto* const to = from.mutable_waiting();
      Waiting waiting;
      waiting.text = reader.text(to->mutable_text(), "waiting.text");
      if (to->has_round()) waiting.round = reader.round(to->round());
      return ServerMessage(std::move(waiting));
    }
    case Kind::kDismissal:
      return ServerMessage(Dismissal{});
    case Kind::KIND_NOT_SET:
      break;
  }
  return std::nullopt;
}

template <class Frame, class Parsed>
Result<std::optional<Frame>> decode(std::string_view body) {
  Parsed parsed;
  if (!parsed.ParseFromArray(body.data(), static_cast<int>(body.size()))) {
    return fail(Errc::InvalidArgument, "a frame of " + std::to_string(body.size()) +
                                           " bytes is no message of the attendance");
  }
  Reader reader;
  auto frame = read(parsed, reader);
  if (reader.error()) return pass(*reader.error());
  return frame;
}

}  // namespace

Result<std::optional<ClientFrame>> decode_client_frame(std::string_view body) {
  return decode<ClientFrame, v1::ClientFrame>(body);
}

Result<std::optional<ServerFrame>> decode_server_frame(std::string_view body) {
  return decode<ServerFrame, v1::ServerFrame>(body);
}

}  // namespace muster::rendezvous

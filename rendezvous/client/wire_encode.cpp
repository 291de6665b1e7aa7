#include "base/assert.hpp"
#include "muster/v1/rendezvous.pb.h"
#include "rendezvous/client/frames.hpp"
#include "rendezvous/client/named_settings.hpp"
#include "rendezvous/client/wire.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace muster::rendezvous {
namespace {

/// How much of a failure travels; a failure that another explains, or that is repeated only for a
/// server that forgot it, is told in fewer words. Counted together, no frame gets longer than it
/// may.
struct Evidence {
  std::size_t traceback;
  std::size_t stderr_bytes;
  std::size_t line;  ///< Of detail and log file, each.
};
constexpr Evidence kWhole{.traceback = kMaxText, .stderr_bytes = kMaxText, .line = kMaxLine};
constexpr Evidence kRepeated{.traceback = 16 * 1024, .stderr_bytes = 16 * 1024, .line = kMaxLine};
constexpr Evidence kExplained{.traceback = 2 * 1024, .stderr_bytes = 2 * 1024, .line = 1024};

/// Of a verdict: failures beside the first cause, and victims; those beyond are as dead, and nobody
/// reads so many lines.
struct Extent {
  std::size_t others;
  std::size_t victims;
  std::size_t summary;
};
constexpr Extent kWholeVerdict{.others = kMaxOthers, .victims = 10000, .summary = kMaxText};
constexpr Extent kRepeatedVerdict{.others = 16, .victims = 1000, .summary = kMaxLine};

/// Of a list of names. Addresses beyond get in by knocking; of nodes that are gone or excluded a
/// server finds out anew.
constexpr std::size_t kMaxListBytes = 640 * 1024;
constexpr std::size_t kMaxHeldBytes = 320 * 1024;
constexpr std::size_t kMaxExcludedBytes = 64 * 1024;

std::string cut(const std::string& text, std::size_t limit = kMaxText) {
  return text.substr(0, limit);
}

/// One that is too long stays so: the other side says which it was.
std::string name(const std::string& text) { return cut(text, kMaxName + 1); }

const std::string& text_of(const std::string& text) { return text; }
const std::string& text_of(const Incarnation& incarnation) { return incarnation.value; }

template <class List, class Out>
void write_names(const List& names, std::size_t room, Out* out) {
  constexpr std::size_t kOverhead = 4;  // Of each, at most.
  for (const auto& each : names) {
    auto text = name(text_of(each));
    if (text.size() + kOverhead > room) return;
    room -= text.size() + kOverhead;
    *out->Add() = std::move(text);
  }
}

void write(const RoundId& round, v1::RoundId* out) {
  out->set_epoch(round.epoch);
  out->set_number(round.number);
}

void write(const Endpoint& endpoint, v1::Endpoint* out) {
  out->set_host(name(endpoint.host));
  out->set_port(endpoint.port);
}

void write(Duration duration, google::protobuf::Duration* out) {
  duration = std::clamp(duration, Duration::zero(), kMaxDuration);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(duration);
  out->set_seconds(seconds.count());
  out->set_nanos(static_cast<std::int32_t>((duration - seconds).count()));
}

void write(const ExitStatus& status, v1::ExitStatus* out) {
  out->set_code(status.code);
  out->set_signal(status.signal);
  out->set_core_dumped(status.core_dumped);
}

void write(const Victim& victim, v1::Victim* out) {
  out->set_rank(victim.rank.value);
  write(victim.status, out->mutable_status());
}

template <class Out>
void write_victims(const std::vector<Victim>& victims, std::size_t most, Out* out) {
  for (const Victim& victim : victims) {
    if (static_cast<std::size_t>(out->victims_size()) == most) return;
    write(victim, out->add_victims());
  }
}

v1::Cause to_wire(Cause cause) {
  switch (cause) {
    case Cause::LostNode:
      return v1::CAUSE_LOST_NODE;
    case Cause::OutOfMemory:
      return v1::CAUSE_OUT_OF_MEMORY;
    case Cause::Hardware:
      return v1::CAUSE_HARDWARE;
    case Cause::OutsideSignal:
      return v1::CAUSE_OUTSIDE_SIGNAL;
    case Cause::WorkerError:
      return v1::CAUSE_WORKER_ERROR;
    case Cause::PeerLoss:
      return v1::CAUSE_PEER_LOSS;
  }
  return v1::CAUSE_UNSPECIFIED;
}

/// The newest lines, as many as fit.
void write_stderr(const std::vector<std::string>& lines, std::size_t limit,
                  v1::WorkerFailure* out) {
  std::size_t first = lines.size();
  for (std::size_t room = limit; first > 0 && lines.size() - first < kMaxStderrLines; --first) {
    const auto size = std::min(lines[first - 1].size(), kMaxLine);
    if (size > room) break;
    room -= size;
  }
  for (; first < lines.size(); ++first) out->add_stderr_lines(cut(lines[first], kMaxLine));
}

void write(const WorkerFailure& failure, v1::WorkerFailure* out, const Evidence& limit) {
  out->set_rank(failure.rank.value);
  out->set_local_rank(failure.local_rank.value);
  out->set_node_rank(failure.node_rank.value);
  out->set_node(cut(failure.node, kMaxName));
  out->set_pid(failure.pid);
  if (failure.status) write(*failure.status, out->mutable_status());
  out->set_user_error(failure.user_error);
  out->set_cause(to_wire(failure.cause));
  out->set_detail(cut(failure.detail, limit.line));
  // A traceback's end says what was raised.
  out->set_traceback(failure.traceback.substr(failure.traceback.size() -
                                              std::min(failure.traceback.size(), limit.traceback)));
  write_stderr(failure.stderr_lines, limit.stderr_bytes, out);
  out->set_log_file(cut(failure.log_file, limit.line));
  out->set_hint(cut(failure.hint, limit.line));
  out->set_phase(cut(failure.phase, kMaxPhase));
  if (failure.step) out->set_step(*failure.step);
  out->set_ended_at(failure.ended_at);
}

void write(const Verdict& verdict, v1::Verdict* out, const Extent& extent,
           const Evidence& evidence) {
  out->set_exit_code(verdict.exit_code);
  out->set_summary(cut(verdict.summary, extent.summary));
  if (verdict.cause) write(*verdict.cause, out->mutable_cause(), evidence);
  for (const auto& other : verdict.others) {
    if (static_cast<std::size_t>(out->others_size()) == extent.others) break;
    write(other, out->add_others(), kExplained);
  }
  write_victims(verdict.victims, extent.victims, out);
  out->set_attempts(verdict.attempts);
  out->set_restarts(verdict.restarts);
  out->set_max_restarts(verdict.max_restarts);
  out->set_alone(verdict.alone);
  if (verdict.round) write(*verdict.round, out->mutable_round());
}

void write(const Keep& keep, v1::Keep* out) {
  if (keep.sizes) {
    out->mutable_sizes()->set_min(keep.sizes->first);
    out->mutable_sizes()->set_max(keep.sizes->second);
  }
  out->set_drained(keep.drained);
  out->set_ended(keep.ended);
}

void write(const Held& held, v1::Held* out) {
  if (held.round) write(*held.round, out->mutable_round());
  out->set_empty(held.empty);
  out->set_broken(!held.unbroken);
  out->set_succeeded(held.succeeded);
  out->set_started(held.started);
  out->set_nodes(held.nodes);
  write(held.highest, out->mutable_highest());
  out->set_attempts(held.attempts);
  out->set_restarts(held.restarts);
  out->set_best_step(held.best_step);
  out->set_fruitless(held.fruitless);
  write_names(held.gone, kMaxHeldBytes, out->mutable_gone());
  if (held.kept != Keep{}) write(held.kept, out->mutable_kept());
  out->set_stuck(held.stuck);
  out->set_node_rank(held.node_rank.value);
  write_names(held.excluded, kMaxExcludedBytes, out->mutable_excluded());
  if (held.verdict) write(*held.verdict, out->mutable_verdict(), kRepeatedVerdict, kRepeated);
  out->set_acknowledged(held.acknowledged);
  out->set_stopped(held.stopped);
  out->set_excused(held.excused);
  for (const auto& failure : held.failures) {
    const auto told = static_cast<std::size_t>(out->failures_size());
    if (told == kRepeatedVerdict.others) break;
    write(failure, out->add_failures(), told == 0 ? kRepeated : kExplained);
  }
  write_victims(held.victims, kRepeatedVerdict.victims, out);
}

void write(const Hello& hello, v1::Hello* out) {
  out->set_job(name(hello.job));
  out->set_launch_tag(name(hello.launch_tag));
  out->set_incarnation(name(hello.incarnation.value));
  out->set_machine(name(hello.machine));
  out->set_name(cut(hello.name, kMaxName));
  out->set_version(cut(hello.version, kMaxName));
  out->set_slots(hello.slots);
  out->set_role(name(hello.role));
  if (hello.node_rank) out->set_node_rank(hello.node_rank->value);
  out->set_topology(name(hello.topology));
  write(hello.store, out->mutable_store());
  out->set_store_is_fixed(hello.store_is_fixed);
  for (const auto& address : hello.addresses) {
    if (static_cast<std::size_t>(out->addresses_size()) == kMaxAddresses) break;
    out->add_addresses(cut(address, kMaxAddress));
  }
  for (const auto& [key, value] : to_names(hello.settings)) {
    auto* const setting = out->add_settings();
    setting->set_name(name(key));
    setting->set_value(name(value));
  }
  out->set_hosts_server(hello.hosts_server);
  write(hello.held, out->mutable_held());
  out->set_ping(hello.ping);
}

void write(const Farewell& farewell, v1::Farewell* out) {
  out->set_job(name(farewell.job));
  out->set_secret(name(farewell.secret));
  if (farewell.round) write(*farewell.round, out->mutable_round());
  out->set_reason(cut(farewell.reason));
  out->set_preempted(farewell.preempted);
}

struct ReportWriter {
  v1::ClientFrame* out;

  void operator()(const Hello&) const {
    MUSTER_ASSERT(!"a Hello goes as a Greeting, with its proof");
  }
  void operator()(const Acknowledged& report) const {
    write(report.round, out->mutable_acknowledged()->mutable_round());
  }
  void operator()(const Unreachable& report) const {
    write(report.round, out->mutable_unreachable()->mutable_round());
    out->mutable_unreachable()->set_detail(cut(report.detail));
  }
  void operator()(const Started& report) const {
    write(report.round, out->mutable_started()->mutable_round());
  }
  void operator()(const Failed& report) const {
    auto* const failed = out->mutable_failed();
    write(report.round, failed->mutable_round());
    write(report.failure, failed->mutable_failure(), kWhole);
    failed->set_started(report.started);
  }
  void operator()(const Succeeded& report) const {
    write(report.round, out->mutable_succeeded()->mutable_round());
  }
  void operator()(const Stopped& report) const {
    write(report.round, out->mutable_stopped()->mutable_round());
  }
  void operator()(const Empty& report) const {
    auto* const empty = out->mutable_empty();
    write(report.round, empty->mutable_round());
    write_victims(report.victims, kMaxSlots, empty);
    write(report.next_store, empty->mutable_next_store());
  }
  void operator()(const Stuck& report) const {
    auto* const stuck = out->mutable_stuck();
    write(report.round, stuck->mutable_round());
    for (const int pid : report.pids) {
      if (static_cast<std::size_t>(stuck->pids_size()) == kMaxPids) return;
      stuck->add_pids(pid);
    }
  }
  void operator()(const Leaving& report) const {
    out->mutable_leaving()->set_signal(report.signal);
    out->mutable_leaving()->set_preempted(report.preempted);
  }
  void operator()(const VerdictSeen&) const { out->mutable_verdict_seen(); }
  void operator()(const Notice& report) const {
    out->mutable_notice()->set_reason(cut(report.reason));
    write(report.left, out->mutable_notice()->mutable_left());
  }
  void operator()(const Saving& report) const {
    write(report.round, out->mutable_saving()->mutable_round());
    out->mutable_saving()->set_left(report.left);
  }
  void operator()(const StoreRefused& report) const {
    write(report.round, out->mutable_store_refused()->mutable_round());
    out->mutable_store_refused()->set_address(cut(report.address, kMaxName));
  }
  void operator()(const Progress& report) const {
    auto* const progress = out->mutable_progress();
    write(report.round, progress->mutable_round());
    for (const auto& worker : report.workers) {
      if (static_cast<std::size_t>(progress->workers_size()) == kMaxSlots) return;
      auto* const to = progress->add_workers();
      to->set_rank(worker.rank.value);
      to->set_step(worker.step);
      to->set_saves(worker.saves);
      to->set_phase(cut(worker.phase, kMaxPhase));
      write(worker.quiet, to->mutable_quiet());
    }
  }
};

struct ClientWriter {
  v1::ClientFrame* out;

  void operator()(const Open& open) const {
    out->mutable_open()->set_version(cut(open.version, kMaxName));
    out->mutable_open()->set_nonce(open.nonce);
  }
  void operator()(const Greeting& greeting) const {
    write(greeting.hello, out->mutable_greeting()->mutable_hello());
    out->mutable_greeting()->set_proof(greeting.proof);
  }
  void operator()(const Parting& parting) const {
    write(parting.farewell, out->mutable_parting()->mutable_farewell());
    out->mutable_parting()->set_proof(parting.proof);
  }
  void operator()(const Unproven& unproven) const {
    out->mutable_unproven()->set_node(cut(unproven.node, kMaxName));
    out->mutable_unproven()->set_reason(cut(unproven.reason));
  }
  void operator()(const AgentMessage& message) const {
    if (const auto* const ping = std::get_if<Ping>(&message)) {
      out->mutable_ping()->set_number(ping->number);
      out->mutable_ping()->set_memory_used(ping->memory_used);
      out->mutable_ping()->set_memory_limit(ping->memory_limit);
    } else {
      std::visit(ReportWriter{out}, std::get<Report>(message));
    }
  }
};

struct OrderWriter {
  v1::Directive* out;

  void operator()(const Assignment& order) const {
    auto* const assignment = out->mutable_assignment();
    write(order.round, assignment->mutable_round());
    assignment->set_attempt(order.attempt);
    assignment->set_restarts(order.restarts);
    assignment->set_max_restarts(order.max_restarts);
    assignment->set_best_step(order.best_step);
    assignment->set_fruitless(order.fruitless);
    assignment->set_world_size(order.world_size);
    assignment->set_rank_offset(order.rank_offset.value);
    assignment->set_local_rank_offset(order.local_rank_offset.value);
    assignment->set_local_world_size(order.local_world_size);
    assignment->set_node_rank(order.node_rank.value);
    assignment->set_nodes(order.nodes);
    assignment->set_role_rank_offset(order.role_rank_offset);
    assignment->set_role_world_size(order.role_world_size);
    write(order.master, assignment->mutable_master());
    assignment->set_store_on_server(order.store_on_server);
    assignment->set_secret(name(order.secret));
    write_names(order.admitted, kMaxListBytes, assignment->mutable_admitted());
    write_names(order.excluded, kMaxExcludedBytes, assignment->mutable_excluded());
  }
  void operator()(const Stop& order) const {
    auto* const stop = out->mutable_stop();
    write(order.round, stop->mutable_round());
    stop->set_signal(order.signal);
    stop->set_reason(cut(order.reason));
    stop->set_keep(order.keep);
    write_names(order.gone, kMaxListBytes, stop->mutable_gone());
    stop->set_blameless(order.blameless);
  }
  void operator()(const Verdict& order) const {
    write(order, out->mutable_verdict(), kWholeVerdict, kWhole);
  }
  void operator()(const Prepare& order) const {
    auto* const prepare = out->mutable_prepare();
    write(order.round, prepare->mutable_round());
    prepare->set_reason(cut(order.reason));
    write(order.left, prepare->mutable_left());
  }
  void operator()(const MasterUp& order) const {
    write(order.round, out->mutable_master_up()->mutable_round());
  }
  void operator()(const Keep& order) const { write(order, out->mutable_keep()); }
};

struct ServerWriter {
  v1::ServerFrame* out;

  void operator()(const Challenge& challenge) const {
    auto* const to = out->mutable_challenge();
    to->set_version(cut(challenge.version, kMaxName));
    to->set_nonce(challenge.nonce);
    to->set_asks_token(challenge.asks_token);
    to->set_proof(challenge.proof);
  }
  void operator()(const PartingSeen&) const { out->mutable_parting_seen(); }
  void operator()(const ServerMessage& message) const { std::visit(*this, message); }

  void operator()(const Welcome& welcome) const {
    out->mutable_welcome()->set_version(cut(welcome.version, kMaxName));
    out->mutable_welcome()->set_embedded(welcome.embedded);
  }
  void operator()(const Refusal& refusal) const {
    out->mutable_refusal()->set_message(cut(refusal.message));
    out->mutable_refusal()->set_exit_code(refusal.exit_code);
  }
  void operator()(const Pong& pong) const {
    out->mutable_pong()->set_number(pong.number);
    out->mutable_pong()->set_gone(pong.gone);
  }
  void operator()(const Directive& directive) const {
    auto* const to = out->mutable_directive();
    to->set_ping(directive.ping);
    if (directive.right) write(*directive.right, to->mutable_right());
    std::visit(OrderWriter{to}, directive.order);
  }
  void operator()(const Waiting& waiting) const {
    out->mutable_waiting()->set_text(cut(waiting.text));
    if (waiting.round) write(*waiting.round, out->mutable_waiting()->mutable_round());
  }
  void operator()(const Dismissal&) const { out->mutable_dismissal(); }
};

template <class Frame>
void append(const Frame& frame, std::string& out) {
  const auto begun = begin_frame(out);
  MUSTER_ASSERT(frame.AppendToString(&out));
  end_frame(out, begun);
}

template <class What>
void append_client(const What& what, std::string& out) {
  v1::ClientFrame frame;
  ClientWriter{&frame}(what);
  append(frame, out);
}

template <class What>
void append_server(const What& what, std::string& out) {
  v1::ServerFrame frame;
  ServerWriter{&frame}(what);
  append(frame, out);
}

}  // namespace

void encode(const ClientFrame& frame, std::string& out) {
  std::visit([&](const auto& each) { append_client(each, out); }, frame);
}
void encode(const Open& open, std::string& out) { append_client(open, out); }
void encode(const Greeting& greeting, std::string& out) { append_client(greeting, out); }
void encode(const Parting& parting, std::string& out) { append_client(parting, out); }
void encode(const AgentMessage& message, std::string& out) { append_client(message, out); }

void encode(const ServerFrame& frame, std::string& out) {
  std::visit([&](const auto& each) { append_server(each, out); }, frame);
}
void encode(const Challenge& challenge, std::string& out) { append_server(challenge, out); }
void encode(const PartingSeen& seen, std::string& out) { append_server(seen, out); }
void encode(const ServerMessage& message, std::string& out) { append_server(message, out); }

}  // namespace muster::rendezvous

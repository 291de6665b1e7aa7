#include "rendezvous/server/control_wire.hpp"

#include "base/exit_status.hpp"
#include "base/text.hpp"
#include "muster/v1/control.pb.h"

#include <string_view>

namespace muster::rendezvous {
namespace {

void write(Duration duration, google::protobuf::Duration& wire) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
  wire.set_seconds(seconds.count());
  wire.set_nanos(static_cast<std::int32_t>((duration - seconds).count()));
}

void write(const NodeView& node, v1::JobNode& wire) {
  wire.set_name(printable(node.name));
  wire.set_machine(printable(node.machine));
  wire.set_address(printable(node.address));
  wire.set_incarnation(printable(node.incarnation.value));
  wire.set_state(node.state);
  wire.set_reason(printable(node.reason));
  if (node.node_rank) wire.set_node_rank(node.node_rank->value);
  wire.set_slots(node.slots);
  if (node.silent_for) write(*node.silent_for, *wire.mutable_silent_for());
  if (!node.progress) return;
  auto& progress = *wire.mutable_progress();
  progress.set_slowest_step(node.progress->slowest);
  progress.set_fastest_step(node.progress->fastest);
  progress.set_phase(printable(node.progress->phase));
  write(node.progress->quiet, *progress.mutable_quiet());
}

std::string_view name_of(Cause cause) {
  switch (cause) {
    case Cause::LostNode:
      return "lost node";
    case Cause::OutOfMemory:
      return "out of memory";
    case Cause::Hardware:
      return "hardware";
    case Cause::OutsideSignal:
      return "outside signal";
    case Cause::WorkerError:
      return "worker error";
    case Cause::PeerLoss:
      return "peer loss";
  }
  return "";
}

void write(const WorkerFailure& failure, v1::JobCause& wire) {
  wire.set_kind(std::string(name_of(failure.cause)));
  wire.set_node(printable(failure.node));
  wire.set_node_rank(failure.node_rank.value);
  wire.set_rank(failure.rank.value);
  wire.set_local_rank(failure.local_rank.value);
  if (failure.status) {
    wire.set_status(failure.status->signal != 0
                        ? signal_name(failure.status->signal)
                        : "exit code " + std::to_string(failure.status->code));
  }
  wire.set_detail(printable(failure.detail));
  for (const auto& line : failure.stderr_lines) wire.add_stderr_lines(printable(line));
}

}  // namespace

void write(const Verdict& verdict, v1::JobOutcome& outcome) {
  outcome.set_exit_code(verdict.exit_code);
  outcome.set_summary(printable(verdict.summary));
  if (verdict.cause) write(*verdict.cause, *outcome.mutable_cause());
}

void write(const JobView& view, Extent extent, v1::JobState& state) {
  const auto shown = [extent](const std::string& text) {
    const std::string_view all = text;
    return printable(extent == Extent::Brief ? all.substr(0, kBriefText) : all);
  };
  state.set_id(view.id);
  state.set_phase(view.phase);
  state.set_reason(shown(view.reason));
  if (view.round) {
    state.mutable_round()->set_epoch(view.round->epoch);
    state.mutable_round()->set_number(view.round->number);
  }
  state.set_attempt(view.attempt);
  state.set_restarts(view.restarts);
  state.set_max_restarts(view.settings.max_restarts);
  state.set_min_nodes(view.settings.min_nodes);
  state.set_max_nodes(view.settings.max_nodes);
  state.set_node_step(view.settings.node_step);
  state.set_world_size(view.world_size);
  if (view.step) state.set_step(*view.step);
  state.set_nodes_total(static_cast<std::uint32_t>(view.nodes.size()));
  write(view.settings.lease, *state.mutable_lease());
  if (view.verdict) {
    auto& outcome = *state.mutable_outcome();
    outcome.set_exit_code(view.verdict->exit_code);
    outcome.set_summary(shown(view.verdict->summary));
  }
  if (extent == Extent::Brief) return;
  for (const auto& node : view.nodes) write(node, *state.add_nodes());
  if (view.verdict) write(*view.verdict, *state.mutable_outcome());
}

RoundId read(const v1::JobRound& round) {
  return {.epoch = round.epoch(), .number = round.number()};
}

}  // namespace muster::rendezvous

#include "rendezvous/server/kept_verdict.hpp"

#include "muster/v1/state.pb.h"
#include "rendezvous/client/wire.hpp"

namespace muster::rendezvous {
namespace {

constexpr std::size_t kFrameHead = 4;  // A frame's length, before its body.

/// What decode_kept takes for a verdict's frame must be one.
const Verdict* verdict_in(const ServerFrame& frame) {
  const auto* message = std::get_if<ServerMessage>(&frame);
  const auto* directive = message == nullptr ? nullptr : std::get_if<Directive>(message);
  return directive == nullptr ? nullptr : std::get_if<Verdict>(&directive->order);
}

}  // namespace

std::string encode_kept(const Archive::Ended& ended) {
  v1::KeptVerdict kept;
  const auto& view = ended.view;
  kept.set_job(view.id);
  kept.set_phase(view.phase);
  kept.set_reason(view.reason);
  kept.set_launch_tag(ended.launch_tag);
  for (const auto& incarnation : ended.attended) kept.add_attended(incarnation.value);
  if (ended.last_round) {
    kept.mutable_last_round()->set_epoch(ended.last_round->epoch);
    kept.mutable_last_round()->set_number(ended.last_round->number);
  }
  kept.set_attempt(view.attempt);
  kept.set_restarts(view.restarts);
  kept.set_max_restarts(view.settings.max_restarts);
  kept.set_min_nodes(view.settings.min_nodes);
  kept.set_max_nodes(view.settings.max_nodes);
  kept.set_node_step(view.settings.node_step);
  Directive directive;
  directive.order = view.verdict.value_or(Verdict{});
  ServerMessage message(std::move(directive));
  std::string frame;
  encode(ServerFrame(std::move(message)), frame);
  kept.set_verdict(frame.substr(kFrameHead));
  return kept.SerializeAsString();
}

Result<Archive::Ended> decode_kept(std::string_view bytes) {
  v1::KeptVerdict kept;
  if (!kept.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || kept.job().empty()) {
    return fail(Errc::InvalidArgument, "it holds no verdict");
  }
  const auto frame = decode_server_frame(kept.verdict());
  if (!frame) return pass(frame.error());
  const auto* const verdict = *frame ? verdict_in(**frame) : nullptr;
  if (verdict == nullptr) return fail(Errc::InvalidArgument, "it holds no verdict");
  Archive::Ended ended;
  ended.view.id = kept.job();
  ended.view.phase = kept.phase();
  ended.view.reason = kept.reason();
  ended.launch_tag = kept.launch_tag();
  for (const auto& incarnation : kept.attended()) ended.attended.insert(Incarnation{incarnation});
  if (kept.has_last_round()) {
    ended.last_round = RoundId{kept.last_round().epoch(), kept.last_round().number()};
  }
  ended.view.round = ended.last_round;
  ended.view.attempt = kept.attempt();
  ended.view.restarts = kept.restarts();
  ended.view.settings.max_restarts = kept.max_restarts();
  ended.view.settings.min_nodes = kept.min_nodes();
  ended.view.settings.max_nodes = kept.max_nodes();
  ended.view.settings.node_step = kept.node_step();
  ended.view.verdict = *verdict;
  return ended;
}

}  // namespace muster::rendezvous

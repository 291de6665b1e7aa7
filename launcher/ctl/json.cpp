#include "launcher/ctl/json.hpp"

#include "base/text.hpp"
#include "muster/v1/control.pb.h"

#include <cmath>
#include <string>

#include <boost/json/array.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>

namespace muster::ctl {
namespace {

namespace json = boost::json;

double seconds(const google::protobuf::Duration& duration) {
  const double exact = static_cast<double>(duration.seconds()) + duration.nanos() / 1e9;
  return std::round(exact * 1000) / 1000;
}

/// A text: its numbers have more digits than many readers of JSON keep.
json::value round_of(const v1::JobState& job) {
  if (!job.has_round()) return nullptr;
  const auto text =
      std::to_string(job.round().epoch()) + "." + std::to_string(job.round().number());
  return json::string(text);
}

json::object to_json(const v1::JobCause& cause) {
  json::array lines;
  for (const auto& line : cause.stderr_lines()) lines.emplace_back(printable(line));
  return {{"kind", cause.kind()},
          {"node", printable(cause.node())},
          {"node_rank", cause.node_rank()},
          {"rank", cause.rank()},
          {"local_rank", cause.local_rank()},
          {"status", cause.status()},
          {"detail", printable(cause.detail())},
          {"stderr", std::move(lines)}};
}

json::object to_json(const v1::JobOutcome& outcome) {
  json::value cause;
  if (outcome.has_cause()) cause = to_json(outcome.cause());
  return {{"exit_code", outcome.exit_code()},
          {"summary", printable(outcome.summary())},
          {"cause", std::move(cause)}};
}

json::object to_json(const v1::JobNode& node) {
  json::value rank;
  if (node.has_node_rank()) rank = node.node_rank();
  json::value progress;
  if (node.has_progress()) {
    progress = {{"slowest_step", node.progress().slowest_step()},
                {"fastest_step", node.progress().fastest_step()},
                {"phase", printable(node.progress().phase())},
                {"quiet_seconds", seconds(node.progress().quiet())}};
  }
  json::value silent;
  if (node.has_silent_for()) silent = seconds(node.silent_for());
  return {{"name", printable(node.name())},       {"machine", printable(node.machine())},
          {"address", printable(node.address())}, {"incarnation", printable(node.incarnation())},
          {"state", printable(node.state())},     {"reason", printable(node.reason())},
          {"node_rank", std::move(rank)},         {"slots", node.slots()},
          {"silent_seconds", std::move(silent)},  {"progress", std::move(progress)}};
}

std::string level_of(v1::DecisionNote::Level level) {
  if (level == v1::DecisionNote::LEVEL_DEBUG) return "debug";
  if (level == v1::DecisionNote::LEVEL_WARN) return "warn";
  return "info";
}

}  // namespace

json::object to_json(const v1::JobState& job, bool with_nodes) {
  json::value outcome;
  if (job.has_outcome()) outcome = to_json(job.outcome());
  json::value step;
  if (job.has_step()) step = job.step();
  json::object object{{"id", printable(job.id())},
                      {"phase", job.phase()},
                      {"reason", printable(job.reason())},
                      {"round", round_of(job)},
                      {"attempt", job.attempt()},
                      {"restarts", job.restarts()},
                      {"max_restarts", job.max_restarts()},
                      {"min_nodes", job.min_nodes()},
                      {"max_nodes", job.max_nodes()},
                      {"node_step", job.node_step()},
                      {"world_size", job.world_size()},
                      {"nodes_total", job.nodes_total()},
                      {"step", std::move(step)},
                      {"lease_seconds", seconds(job.lease())},
                      {"outcome", std::move(outcome)}};
  if (!with_nodes) return object;
  json::array nodes;
  for (const auto& node : job.nodes()) nodes.emplace_back(to_json(node));
  object.emplace("nodes", std::move(nodes));
  return object;
}

json::object to_json(const v1::WatchedEvent& event) {
  json::object object{{"sequence", event.sequence()}, {"job", printable(event.job())}};
  switch (event.kind_case()) {
    case v1::WatchedEvent::kState:
      object.emplace("event", "state");
      object.emplace("state", to_json(event.state(), false));
      break;
    case v1::WatchedEvent::kNote:
      object.emplace("event", "note");
      object.emplace("level", level_of(event.note().level()));
      object.emplace("text", printable(event.note().text()));
      break;
    case v1::WatchedEvent::kEnded:
      object.emplace("event", "ended");
      object.emplace("outcome", to_json(event.ended()));
      break;
    case v1::WatchedEvent::kLost:
      object.emplace("event", "lost");
      object.emplace("count", event.lost().count());
      break;
    case v1::WatchedEvent::KIND_NOT_SET:
      object.emplace("event", "unknown");
      break;
  }
  return object;
}

}  // namespace muster::ctl

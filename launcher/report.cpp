#include "launcher/report.hpp"

#include "base/text.hpp"
#include "launcher/wall_time.hpp"

#include <boost/json.hpp>

namespace muster::launcher {
namespace json = boost::json;
namespace {

constexpr int kVersion = 1;

std::string_view name_of(Cause cause) {
  switch (cause) {
    case Cause::LostNode:
      return "lost_node";
    case Cause::OutOfMemory:
      return "out_of_memory";
    case Cause::Hardware:
      return "hardware";
    case Cause::OutsideSignal:
      return "outside_signal";
    case Cause::WorkerError:
      return "worker_error";
    case Cause::PeerLoss:
      return "peer_loss";
  }
  return "";
}

/// A member for each text that there is.
void add(json::object& object, std::string_view name, std::string_view text) {
  if (!text.empty()) object[name] = to_utf8(text);
}

void add(json::object& object, const ExitStatus& status) {
  if (status.signal == 0) {
    object["exit_code"] = status.code;
    return;
  }
  object["signal"] = status.signal;
  object["signal_name"] = signal_name(status.signal);
  object["core_dumped"] = status.core_dumped;
}

json::object describe_in_json(const WorkerFailure& failure) {
  json::object object{{"class", name_of(failure.cause)}};
  const bool is_a_worker = failure.cause != Cause::LostNode;
  if (is_a_worker) {
    object["rank"] = failure.rank.value;
    object["local_rank"] = failure.local_rank.value;
    if (failure.pid > 0) object["pid"] = failure.pid;
    if (failure.status) add(object, *failure.status);
    object["started"] = failure.status.has_value();
  }
  if (is_known(failure.node_rank)) object["node_rank"] = failure.node_rank.value;
  add(object, "node", failure.node);
  add(object, "detail", failure.detail);
  add(object, "hint", failure.hint);
  add(object, "ended_at", utc_time(failure.ended_at));
  add(object, "phase", failure.phase);
  if (failure.step) object["step"] = *failure.step;
  add(object, "traceback", failure.traceback);
  if (!failure.stderr_lines.empty()) {
    json::array lines;
    for (const auto& line : failure.stderr_lines) lines.emplace_back(to_utf8(line));
    object["stderr"] = std::move(lines);
  }
  add(object, "log_file", failure.log_file);
  return object;
}

json::object describe_in_json(const Victim& victim) {
  json::object object{{"rank", victim.rank.value}};
  add(object, victim.status);
  return object;
}

template <class T>
json::array list(const std::vector<T>& all) {
  json::array array;
  for (const auto& one : all) array.emplace_back(describe_in_json(one));
  return array;
}

}  // namespace

std::string report(const Verdict& verdict, const JobFacts& facts, std::string_view version) {
  json::object object{{"muster_report", kVersion},
                      {"version", version},
                      {"job", to_utf8(facts.id)},
                      {"exit_code", verdict.exit_code},
                      {"summary", to_utf8(verdict.summary)},
                      {"left_alone", verdict.alone}};
  if (facts.node_rank) object["node_rank"] = facts.node_rank->value;
  add(object, "command", facts.command);
  add(object, "began_at", utc_time(facts.began_at));
  add(object, "ended_at", utc_time(facts.ended_at));
  object["seconds"] = std::chrono::duration<double>(facts.took).count();
  object["attempts"] = verdict.attempts;
  object["restarts"] = verdict.restarts;
  object["max_restarts"] = verdict.max_restarts;
  add(object, "log_folder", facts.log_folder);
  if (!facts.survivors.empty())
    object["survivors"] = json::array(facts.survivors.begin(), facts.survivors.end());
  object["cause"] = verdict.cause ? json::value(describe_in_json(*verdict.cause)) : json::value();
  object["others"] = list(verdict.others);
  object["victims"] = list(verdict.victims);
  return json::serialize(object) + "\n";
}

}  // namespace muster::launcher

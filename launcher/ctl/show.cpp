#include "launcher/ctl/show.hpp"

#include "base/text.hpp"
#include "muster/v1/control.pb.h"

#include <algorithm>
#include <cstdio>
#include <span>

namespace muster::ctl {
namespace {

using Row = std::vector<std::string>;

/// Characters, not bytes: what is printable has one character for each byte that does not go on.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

/// Columns as wide as they must be, two blanks between them, none at a line's end.
std::string table(std::span<const Row> rows, const std::string& indent) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], width_of(row[column]));
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = indent;
    for (std::size_t column = 0; column < row.size(); ++column) {
      line += row[column] + std::string(widths[column] - width_of(row[column]) + 2, ' ');
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string sizes_of(const v1::JobState& job) {
  std::string text = std::to_string(job.min_nodes());
  if (job.max_nodes() != job.min_nodes()) text += ":" + std::to_string(job.max_nodes());
  if (job.node_step() > 1) text += ":" + std::to_string(job.node_step());
  return text;
}

std::string restarts_of(const v1::JobState& job) {
  return std::to_string(job.restarts()) + " of " + std::to_string(job.max_restarts());
}

std::string seconds(const google::protobuf::Duration& duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1fs",
                static_cast<double>(duration.seconds()) + duration.nanos() / 1e9);
  return text;
}

/// "1204", "1198 to 1204"; for a node whose workers tell theirs.
std::string steps_of(const v1::JobNode& node) {
  if (!node.has_progress()) return "-";
  const auto& progress = node.progress();
  auto text = std::to_string(progress.slowest_step());
  if (progress.fastest_step() != progress.slowest_step())
    text += " to " + std::to_string(progress.fastest_step());
  return text;
}

std::string or_dash(std::string text) { return text.empty() ? "-" : text; }

std::string cause_of(const v1::JobCause& cause) {
  std::string text = cause.kind() + ", rank " + std::to_string(cause.rank());
  if (!cause.node().empty()) text += " on " + cause.node();
  if (!cause.status().empty()) text += ", " + cause.status();
  if (!cause.detail().empty()) text += ": " + cause.detail();
  return printable(text);
}

}  // namespace

std::string show_jobs(const std::vector<const v1::JobState*>& jobs) {
  if (jobs.empty()) return "no jobs\n";
  std::vector<Row> rows{
      {"JOB", "PHASE", "NODES", "SIZES", "WORKERS", "ATTEMPT", "RESTARTS", "WHY"}};
  for (const auto* job : jobs) {
    rows.push_back({printable(job->id()), job->phase(), std::to_string(job->nodes_total()),
                    sizes_of(*job), std::to_string(job->world_size()),
                    std::to_string(job->attempt()), restarts_of(*job), printable(job->reason())});
  }
  return table(rows, "");
}

std::string show_job(const v1::JobState& job) {
  std::vector<Row> facts{{"phase", job.phase()}};
  if (!job.reason().empty()) facts.push_back({"why", printable(job.reason())});
  if (job.has_round()) {
    facts.push_back({"round", std::to_string(job.round().epoch()) + "." +
                                  std::to_string(job.round().number()) + ", attempt " +
                                  std::to_string(job.attempt())});
  }
  facts.push_back({"nodes", std::to_string(job.nodes_total()) + ", may be " + sizes_of(job)});
  facts.push_back({"workers", std::to_string(job.world_size())});
  if (job.has_step()) facts.push_back({"step", std::to_string(job.step())});
  facts.push_back({"restarts", restarts_of(job)});
  facts.push_back({"lease", seconds(job.lease())});
  if (job.has_outcome()) {
    facts.push_back({"exit code", std::to_string(job.outcome().exit_code())});
    if (!job.outcome().summary().empty()) {
      facts.push_back({"summary", printable(job.outcome().summary())});
    }
    if (job.outcome().has_cause()) facts.push_back({"cause", cause_of(job.outcome().cause())});
  }
  std::string text = "job " + printable(job.id()) + "\n" + table(facts, "  ");
  if (job.nodes().empty()) return text;
  std::vector<Row> rows{
      {"RANK", "NODE", "STATE", "ADDRESS", "WORKERS", "HEARD", "STEP", "PHASE", "QUIET", "WHY"}};
  for (const auto& node : job.nodes()) {
    rows.push_back({node.has_node_rank() ? std::to_string(node.node_rank()) : "-",
                    or_dash(printable(node.name())), printable(node.state()),
                    or_dash(printable(node.address())), std::to_string(node.slots()),
                    node.has_silent_for() ? seconds(node.silent_for()) + " ago" : "-",
                    steps_of(node), or_dash(printable(node.progress().phase())),
                    node.has_progress() ? seconds(node.progress().quiet()) : "-",
                    printable(node.reason())});
  }
  return text + table(rows, "  ");
}

std::string show_event(const v1::WatchedEvent& event) {
  std::string text = event.job().empty() ? "" : "job " + printable(event.job()) + ": ";
  switch (event.kind_case()) {
    case v1::WatchedEvent::kState: {
      const auto& job = event.state();
      text += "is " + job.phase() + ", nodes " + std::to_string(job.nodes_total()) + ", workers " +
              std::to_string(job.world_size()) + ", attempt " + std::to_string(job.attempt()) +
              ", restarts " + restarts_of(job);
      if (!job.reason().empty()) text += ": " + printable(job.reason());
      break;
    }
    case v1::WatchedEvent::kNote:
      text += printable(event.note().text());
      break;
    case v1::WatchedEvent::kEnded:
      text += "has ended with exit code " + std::to_string(event.ended().exit_code());
      if (!event.ended().summary().empty()) text += ": " + printable(event.ended().summary());
      break;
    case v1::WatchedEvent::kLost:
      text += std::to_string(event.lost().count()) + " events were lost: they came too fast";
      break;
    case v1::WatchedEvent::KIND_NOT_SET:
      text += "something that this version does not know";
      break;
  }
  return text + "\n";
}

}  // namespace muster::ctl

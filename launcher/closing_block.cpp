#include "launcher/closing_block.hpp"

#include "base/failure_text.hpp"
#include "base/text.hpp"
#include "launcher/wall_time.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include <fmt/format.h>

namespace muster::launcher {
namespace {

/// How much of a worker's stderr the block shows; the rest stands above it or in the log.
constexpr std::size_t kShownLines = 15;
constexpr std::size_t kShownTracebackLines = 32;
constexpr std::size_t kShownLineBytes = 1000;

/// A line that a worker wrote, perhaps on another machine. A tab does no harm.
std::string printable_line(std::string_view line) {
  std::string text;
  for (auto tab = line.find('\t'); tab != std::string_view::npos; tab = line.find('\t')) {
    text += printable(line.substr(0, tab)) + '\t';
    line.remove_prefix(tab + 1);
  }
  return text + printable(line);
}

/// Appends `  name       text`, further lines indented below.
void add(std::string& block, std::string_view name, std::string_view text) {
  for (const auto line : split(text, '\n')) {
    block += fmt::format("  {:<10} {}{}\n", name, printable_line(line.substr(0, kShownLineBytes)),
                         line.size() > kShownLineBytes ? "..." : "");
    name = {};
  }
}

/// What is left out is `...`.
std::string join_last(const std::vector<std::string>& lines, std::size_t most) {
  const auto from = lines.size() - std::min(lines.size(), most);
  std::string text = from > 0 ? "...\n" : "";
  for (auto i = from; i < lines.size(); ++i) text += (i == from ? "" : "\n") + lines[i];
  return text;
}

/// The end of a long traceback is what matters.
std::string last_lines_of(const std::string& text, std::size_t most) {
  const auto end = text.find_last_not_of('\n') + 1;
  const auto lines = lines_of(std::string_view(text).substr(0, end));
  return join_last({lines.begin(), lines.end()}, most);
}

/// `rank 3`, `ranks 0, 1, 4-7`.
std::string name_ranks(std::vector<std::uint32_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::string text;
  for (auto first = ranks.begin(); first != ranks.end();) {
    auto last = first;
    while (last + 1 != ranks.end() && *(last + 1) == *last + 1) ++last;
    if (last - first == 1) last = first;  // Two neighbours are no range.
    text += text.empty() ? "" : ", ";
    text += std::to_string(*first);
    if (last != first) text += "-" + std::to_string(*last);
    first = last + 1;
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

/// ` at step 1,204 in phase train`: what the worker's beacon told last.
std::string how_far(const WorkerFailure& failure) {
  std::string text;
  if (failure.step) {
    auto digits = std::to_string(*failure.step);
    for (auto at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
    text = " at step " + digits;
  }
  if (!failure.phase.empty()) text += " in phase " + failure.phase;
  return text;
}

/// Those that ended alike share a line. Most lines of a list; the rest is counted.
class Alike {
 public:
  void add(std::string end, std::uint32_t rank) {
    const auto known =
        std::find_if(ends_.begin(), ends_.end(), [&end](const End& one) { return one.how == end; });
    if (known != ends_.end()) {
      known->ranks.push_back(rank);
    } else {
      ends_.push_back({std::move(end), {rank}});
    }
  }

  /// `ranks 0-6` and how they ended, a line for each way.
  [[nodiscard]] std::string text() const {
    constexpr std::size_t kMostLines = 8;
    std::string text;
    std::size_t left_out = 0;
    for (std::size_t index = 0; index < ends_.size(); ++index) {
      if (index < kMostLines) {
        text += (index == 0 ? "" : "\n") + name_ranks(ends_[index].ranks) + ends_[index].how;
      } else {
        left_out += ends_[index].ranks.size();
      }
    }
    return left_out == 0 ? text : text + fmt::format("\nand {} more", left_out);
  }

 private:
  struct End {
    std::string how;
    std::vector<std::uint32_t> ranks;
  };
  std::vector<End> ends_;  // In order of arrival.
};

std::string list_others(const std::vector<WorkerFailure>& others) {
  Alike alike;
  for (const auto& other : others) {
    alike.add(fmt::format("{} {}{}{}", other.node.empty() ? "" : " on " + other.node,
                          how_it_failed(other), other.detail.empty() ? "" : ": ", other.detail),
              other.rank.value);
  }
  return alike.text();
}

std::string list_victims(const std::vector<Victim>& victims) {
  constexpr std::string_view kVerb = "was ";
  Alike alike;
  for (const auto& victim : victims) {
    const auto end = describe(victim.status);
    alike.add(fmt::format(": {}; stopped by muster",
                          end.starts_with(kVerb) ? end.substr(kVerb.size()) : end),
              victim.rank.value);
  }
  return alike.text();
}

void add_cause(std::string& block, const WorkerFailure& cause, const JobFacts& facts) {
  const bool is_a_worker = cause.cause != Cause::LostNode;  // Of which the summary says all.
  if (!is_a_worker) return;
  if (const auto at = local_time(cause.ended_at); !at.empty()) add(block, "at", at);
  if (!cause.detail.empty()) add(block, "because", cause.detail);
  if (!cause.hint.empty()) add(block, "hint", cause.hint);
  add(block, "ran", facts.command);
  if (facts.python) add(block, "python", facts.python->path + " (" + facts.python->why + ")");
  if (!cause.traceback.empty()) {
    add(block, "traceback", last_lines_of(cause.traceback, kShownTracebackLines));
  } else if (!cause.stderr_lines.empty()) {
    add(block, "stderr", join_last(cause.stderr_lines, kShownLines));
  } else if (facts.err_on_terminal && cause.status) {
    add(block, "stderr", "went to the terminal, above");
  }
  if (!cause.log_file.empty()) add(block, "log", cause.log_file);
}

}  // namespace

bool is_known(NodeRank rank) { return rank.value != std::numeric_limits<std::uint32_t>::max(); }

std::string shell_text(const std::vector<std::string>& argv) {
  constexpr std::size_t kMostShown = 300;
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  std::string text;
  for (const auto& argument : argv) {
    if (!text.empty()) text += ' ';
    if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) {
      text += argument;
      continue;
    }
    text += '\'';
    for (const char c : argument) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += '\'';
    if (text.size() > kMostShown) break;
  }
  if (text.size() > kMostShown) text = text.substr(0, kMostShown) + "...";
  return printable(text);
}

std::string closing_block(const Verdict& verdict, const JobFacts& facts) {
  std::string summary = verdict.summary;
  if (verdict.cause) summary += how_far(*verdict.cause);
  if (verdict.cause) {
    const auto& cause = *verdict.cause;
    const bool is_a_worker = cause.cause != Cause::LostNode;
    if (is_known(cause.node_rank)) {
      summary +=
          fmt::format(" (node {}{}{})", cause.node_rank.value,
                      is_a_worker ? fmt::format(", local rank {}", cause.local_rank.value) : "",
                      is_a_worker && cause.pid > 0 ? fmt::format(", pid {}", cause.pid) : "");
    }
  }
  if (verdict.alone) {
    return fmt::format("muster: this node left job {} after {:.1f} s: {}; exit code {}\n",
                       printable(facts.id), std::chrono::duration<double>(facts.took).count(),
                       printable(summary), verdict.exit_code);
  }
  std::string block =
      fmt::format("muster: job {} {} after {:.1f} s: {}", printable(facts.id),
                  verdict.cause ? "failed" : "ended",
                  std::chrono::duration<double>(facts.took).count(), printable(summary));
  if (facts.is_told_elsewhere) {
    return block + fmt::format("; exit code {}; node 0 tells the rest\n", verdict.exit_code);
  }
  block += '\n';
  if (verdict.cause) add_cause(block, *verdict.cause, facts);
  if (!verdict.others.empty()) add(block, "also", list_others(verdict.others));
  if (!verdict.victims.empty()) add(block, "victims", list_victims(verdict.victims));
  add(block, "restarts", fmt::format("{} of {} used", verdict.restarts, verdict.max_restarts));
  if (!facts.log_folder.empty()) add(block, "logs", facts.log_folder);
  add(block, "exit code", std::to_string(verdict.exit_code));
  return block;
}

}  // namespace muster::launcher

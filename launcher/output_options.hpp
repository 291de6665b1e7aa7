#pragma once

#include "agent/run/input_plan.hpp"
#include "base/rank_set.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::launcher {

enum class LogFormat { Text, Json };

/// How output is shown and kept, beside the choice of streams.
struct OutputOptions {
  std::optional<std::string> prefix;          ///< A template; nullopt: the usual one.
  std::string prefix_origin;                  ///< The flag or variable that it is of.
  std::optional<RankSet> local_ranks_filter;  ///< Who may reach our own streams; nullopt: all.
  std::optional<RankSet> ranks_filter;        ///< The same, by global rank.
  /// Lines of stdout with any of these texts are copied.
  std::vector<std::string> stdout_filters;
  std::vector<std::string> stderr_filters;
  bool fold = false;
  LogFormat log_format = LogFormat::Text;
  std::uint64_t log_max_size = 0;         ///< Of a log file, in bytes; 0: as it comes.
  std::optional<std::uint32_t> log_keep;  ///< Older pieces of one; nullopt: the usual number.
  agent::InputPlan input;
};

}  // namespace muster::launcher

#pragma once

#include "agent/run/json_lines.hpp"
#include "base/log/log.hpp"
#include "base/membership.hpp"
#include "launcher/closing_block.hpp"
#include "launcher/program.hpp"

#include <chrono>
#include <string>
#include <string_view>

namespace muster::launcher {

/// Files in which the end of the job is told, beside stderr. Empty: not there.
struct EndFiles {
  std::string report;        ///< `--report`.
  std::string parent_error;  ///< The launcher's own TORCHELASTIC_ERROR_FILE.
};

/// The last that we say, on stderr; `json`: as a line of that, nullptr: as it is.
void say_last(std::string text, const agent::JsonFormat* json);

/// Tells how the job ended: on stderr, in the report, and for a failure in the parent's error file
/// and in /dev/termination-log, where Kubernetes looks for the reason. What can't be written is a
/// warning.
class Ending {
 public:
  /// The job begins now. What is referred to outlives it.
  Ending(std::string job, EndFiles files, const Program& program, std::string_view version,
         Logger& logger, const agent::JsonFormat* json);

  /// To be filled in as it becomes known.
  [[nodiscard]] JobFacts& facts() { return facts_; }

  /// `recorded`: what the worker that was the cause wrote into its error file; empty: nothing that
  /// is known here.
  void tell(const Verdict& verdict, const std::string& recorded);
  /// There is no verdict: an error of our own, or this node left the job. `line` is what stderr was
  /// told already; the files get it as well.
  void keep(int exit_code, const std::string& message, std::string_view line);

 private:
  void write(const Verdict& verdict, std::string_view text, const std::string& recorded);

  JobFacts facts_;
  EndFiles files_;
  const Program& program_;
  std::string_view version_;
  Logger& logger_;
  const agent::JsonFormat* json_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace muster::launcher

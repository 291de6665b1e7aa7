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

/// Tells how the job ended: on stderr, in the report, and for a failure in the parent's error file
/// and in /dev/termination-log, where Kubernetes looks for the reason. What can't be written is a
/// warning.
class Ending {
 public:
  /// The job begins now. What is referred to outlives it.
  Ending(std::string job, EndFiles files, const Program& program, std::string_view version,
         Logger& logger, const agent::JsonFormat* json);  ///< `json`: how stderr is written;
                                                          ///< nullptr: as text.

  /// To be filled in as it becomes known.
  [[nodiscard]] JobFacts& facts() { return facts_; }

  /// Writes the files. `recorded`: what the worker that was the cause wrote into its error file;
  /// empty: nothing that is known here.
  void record(const Verdict& verdict, const std::string& recorded);
  /// There is no verdict: an error of our own, or this node left the job. `line` is for stderr; the
  /// files get it as well.
  void record(int exit_code, const std::string& message, std::string line);
  /// The last that we say, on stderr. Whoever reads it may be slow: so much is lost then.
  void say(Duration patience);

 private:
  void write(const Verdict& verdict, const std::string& recorded);

  JobFacts facts_;
  EndFiles files_;
  const Program& program_;
  std::string_view version_;
  Logger& logger_;
  const agent::JsonFormat* json_;
  std::string text_;  // For stderr; empty: nothing.
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace muster::launcher

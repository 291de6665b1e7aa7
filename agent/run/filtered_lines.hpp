#pragma once

#include "agent/core/prefix.hpp"
#include "agent/run/line_sink.hpp"
#include "agent/run/log_file.hpp"

#include <string>
#include <vector>

namespace muster::agent {

/// Copies the lines of one worker's stream that contain any of some texts into a file that the
/// node's workers share.
class FilteredLines : public LineSink {
 public:
  FilteredLines(LogFile& file, const std::vector<std::string>& texts, Prefix prefix)
      : file_(file), texts_(texts), prefix_(std::move(prefix)) {}

  void take(const Line& line) override;
  void flush() override;

 private:
  LogFile& file_;
  const std::vector<std::string>& texts_;
  Prefix prefix_;
  std::string turn_;
};

}  // namespace muster::agent

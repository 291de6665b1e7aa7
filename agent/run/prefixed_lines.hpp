#pragma once

#include "agent/core/prefix.hpp"
#include "agent/run/console.hpp"
#include "agent/run/line_sink.hpp"

#include <string>

namespace muster::agent {

/// Shows a stream's lines on a console, each with a prefix, and what is there of an unfinished one.
class PrefixedLines : public LineSink {
 public:
  PrefixedLines(Console& console, Prefix prefix);

  void take(const Line& line) override;
  void flush() override;
  [[nodiscard]] bool shows_unfinished(const Line&) const override { return true; }

 private:
  Console& console_;
  Prefix prefix_;
  std::string shown_prefix_;  // Of this turn.
  std::string turn_;
};

}  // namespace muster::agent

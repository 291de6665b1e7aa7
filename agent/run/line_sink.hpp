#pragma once

#include "agent/core/line_cutter.hpp"

namespace muster::agent {

/// Where the lines of one stream of one worker go. Loop thread only.
class LineSink {
 public:
  LineSink() = default;
  LineSink(const LineSink&) = delete;
  virtual ~LineSink() = default;

  virtual void take(const Line& line) = 0;
  /// When the lines of one turn were taken.
  virtual void flush() = 0;
  /// Whether it shows a line before that has ended.
  [[nodiscard]] virtual bool shows_unfinished(const Line&) const { return false; }
};

}  // namespace muster::agent

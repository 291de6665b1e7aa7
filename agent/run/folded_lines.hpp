#pragma once

#include "agent/core/fold.hpp"
#include "agent/run/life.hpp"
#include "agent/run/prefixed_lines.hpp"

#include <cstdint>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace muster::agent {

/// One console of a round whose workers' equal lines are drawn together. Loop thread only.
class FoldedConsole {
 public:
  struct Settings {
    std::string prefix;  ///< A template: `${rank}` and `${local_rank}` become sets.
    Prefix::Facts facts;
    std::uint32_t workers = 0;
    std::uint32_t first_rank = 0;  ///< Of the node's first worker.
    std::uint32_t first_local_rank = 0;
  };

  FoldedConsole(boost::asio::io_context& loop, Console& console, Settings settings);

  void add(std::uint32_t worker, std::string_view text);
  /// Shows what of this worker is held back.
  void show_through(std::uint32_t worker) { show(fold_.take_through(worker)); }
  void show_all() { show(fold_.take_all()); }
  /// After lines were added.
  void flush();

  [[nodiscard]] Prefix prefix_of(const RankSet& workers) const;
  [[nodiscard]] Console& console() { return console_; }

 private:
  void show(const std::vector<Fold::Folded>& lines);

  Console& console_;
  Settings settings_;
  bool has_time_;
  Fold fold_;
  boost::asio::steady_timer timer_;
  Life life_;
};

/// One worker's stream on such a console. A prompt is shown though its line has not ended, and
/// stays out of the fold; of what carriage returns draw the end is shown.
class FoldedLines : public LineSink {
 public:
  FoldedLines(FoldedConsole& fold, std::uint32_t worker);

  void take(const Line& line) override;
  void flush() override;
  [[nodiscard]] bool shows_unfinished(const Line& line) const override { return !line.is_redrawn; }

 private:
  FoldedConsole& fold_;
  std::uint32_t worker_;
  PrefixedLines alone_;
};

}  // namespace muster::agent

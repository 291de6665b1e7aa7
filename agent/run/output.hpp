#pragma once

#include "agent/run/console.hpp"
#include "agent/run/folded_lines.hpp"
#include "agent/run/json_lines.hpp"
#include "agent/run/line_sink.hpp"
#include "agent/run/log_file.hpp"
#include "agent/run/log_folder.hpp"
#include "base/error.hpp"
#include "base/log/log.hpp"
#include "base/membership.hpp"
#include "base/rank_set.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>

namespace muster::agent {

/// How workers' output is shown and kept, beside what each worker's plan says.
struct OutputSettings {
  std::string prefix = "[${role_name}${local_rank}]:";  ///< A template.
  std::string role = "default";
  bool folds = false;
  std::shared_ptr<JsonFormat> json;      ///< Lines are JSON; null: text.
  std::optional<RankSet> ranks_filter;   ///< Whose output may be shown; nullopt: all.
  std::vector<std::string> out_filters;  ///< Lines with one of them are copied into a file.
  std::vector<std::string> err_filters;
  Rotation rotation;
};

/// The launcher's own streams, and how lines get onto them: those of the workers of a round, and
/// those of our log. Loop thread only.
class Output {
 public:
  /// `logger`'s lines go through it from now on, since one that waited for whoever should read
  /// stderr would hold up the loop.
  Output(boost::asio::io_context& loop, OutputSettings settings, Logger& logger);
  ~Output();

  /// Before the streams of its workers are opened; `folder` is that of the attempt, if any.
  [[nodiscard]] Result<void> begin_round(const Assignment& assignment, std::uint32_t workers,
                                         const std::optional<LogFolder>& logs);
  /// When all that the workers wrote was taken.
  void end_round();
  /// Writes what is queued, blocking for at most `patience`. For the end.
  void flush(Duration patience);

  enum class Stream { Out, Err };
  /// nullptr: what this worker writes is not to be shown.
  [[nodiscard]] Console* console(Stream stream, std::uint32_t worker);
  /// What shows a worker's lines on that console.
  [[nodiscard]] std::unique_ptr<LineSink> lines(Stream stream, std::uint32_t worker);
  /// What copies those that contain what is looked for; null: nothing is.
  [[nodiscard]] std::unique_ptr<LineSink> copies(Stream stream, std::uint32_t worker);
  /// Whether our own stream can be handed over to a worker, as it is.
  [[nodiscard]] bool can_be_handed_over(Stream stream) const;
  [[nodiscard]] const Rotation& rotation() const { return settings_.rotation; }
  [[nodiscard]] Logger& logger() { return logger_; }
  /// Into which streams are read, one at a time.
  [[nodiscard]] std::span<char> scratch() { return scratch_; }

 private:
  struct OfStream {
    Console* console;
    std::optional<FoldedConsole> fold;
    std::optional<LogFile> filtered;
  };

  OfStream& of(Stream stream) { return stream == Stream::Out ? out_ : err_; }
  const std::vector<std::string>& filters(Stream stream) const {
    return stream == Stream::Out ? settings_.out_filters : settings_.err_filters;
  }
  Prefix prefix_of(std::uint32_t worker) const;
  void write_log(std::string_view line);

  boost::asio::io_context& loop_;
  OutputSettings settings_;
  Logger& logger_;
  std::string host_;
  Console out_console_;
  std::optional<Console> err_console_;  // None: stderr is the same file as stdout.
  OfStream out_;
  OfStream err_;
  bool err_is_terminal_;
  Rank first_rank_;
  LocalRank first_local_rank_;
  std::vector<char> scratch_;
  std::size_t lost_lines_ = 0;  // Of our own log, while nobody read stderr.
};

}  // namespace muster::agent

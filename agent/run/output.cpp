#include "agent/run/output.hpp"

#include "agent/run/filtered_lines.hpp"
#include "base/posix/folder.hpp"
#include "base/posix/stream.hpp"

#include <utility>

namespace muster::agent {
namespace {

constexpr std::size_t kScratch = 64 * 1024;

}  // namespace

Output::Output(boost::asio::io_context& loop, OutputSettings settings, Logger& logger)
    : loop_(loop),
      settings_(std::move(settings)),
      logger_(logger),
      host_(posix::short_host_name()),
      out_console_(loop, 1, "stdout", logger),
      out_{.console = &out_console_, .fold = {}, .filtered = {}},
      err_{.console = &out_console_, .fold = {}, .filtered = {}},
      err_is_terminal_(posix::is_terminal(2)),
      scratch_(kScratch) {
  // Two queues for one file would put the line of one into an unfinished line of the other.
  if (!posix::is_same_file(1, 2)) {
    err_.console = &err_console_.emplace(loop, 2, "stderr", logger);
  }
  write_log_through(logger_, [this](const std::string& line) { write_log(line); });
}

Output::~Output() { write_log_through(logger_, {}); }

Result<void> Output::begin_round(const Assignment& assignment, std::uint32_t workers,
                                 const std::optional<LogFolder>& logs) {
  first_rank_ = assignment.rank_offset;
  first_local_rank_ = assignment.local_rank_offset;
  if (settings_.json) settings_.json->begin_round({assignment.node_rank, assignment.attempt});
  for (const auto stream : {Stream::Out, Stream::Err}) {
    auto& it = of(stream);
    if (settings_.folds) {
      it.fold.emplace(
          loop_, *it.console,
          FoldedConsole::Settings{
              .prefix = settings_.prefix,
              .facts = {.role = settings_.role, .local_rank = {}, .rank = {}, .host = host_},
              .workers = workers,
              .first_rank = first_rank_.value,
              .first_local_rank = first_local_rank_.value});
    }
    if (filters(stream).empty() || !logs) continue;
    auto folder = logs->attempt(assignment.attempt);
    if (!folder) return pass(folder.error());
    const auto* const name =
        stream == Stream::Out ? "/filtered_stdout.log" : "/filtered_stderr.log";
    auto file = LogFile::open(*folder + name, settings_.rotation, logger_);
    if (!file) return pass(file.error());
    it.filtered.emplace(std::move(*file));
  }
  return {};
}

void Output::end_round() {
  for (const auto stream : {Stream::Out, Stream::Err}) {
    if (auto& fold = of(stream).fold) fold->show_all();
  }
}

void Output::flush(Duration patience) {
  const auto ends = std::chrono::steady_clock::now() + patience;
  out_console_.flush(patience);
  if (err_console_) err_console_->flush(ends - std::chrono::steady_clock::now());
}

Console* Output::console(Stream stream, std::uint32_t worker) {
  const auto& filter = settings_.ranks_filter;
  const bool shown = !filter || filter->contains(first_rank_.value + worker);
  return shown ? of(stream).console : nullptr;
}

std::unique_ptr<LineSink> Output::lines(Stream stream, std::uint32_t worker) {
  auto& it = of(stream);
  if (settings_.json) {
    return std::make_unique<JsonLines>(*it.console, *settings_.json,
                                       Rank{first_rank_.value + worker},
                                       stream == Stream::Out ? "stdout" : "stderr");
  }
  if (it.fold) return std::make_unique<FoldedLines>(*it.fold, worker);
  return std::make_unique<PrefixedLines>(*it.console, prefix_of(worker));
}

std::unique_ptr<LineSink> Output::copies(Stream stream, std::uint32_t worker) {
  auto& it = of(stream);
  if (!it.filtered) return nullptr;
  return std::make_unique<FilteredLines>(*it.filtered, filters(stream), prefix_of(worker));
}

bool Output::can_be_handed_over(Stream stream) const {
  // What goes to a terminal needs no copy: the user sees the last lines there.
  return stream == Stream::Out || err_is_terminal_;
}

Prefix Output::prefix_of(std::uint32_t worker) const {
  return {settings_.prefix,
          {.role = settings_.role,
           .local_rank = std::to_string(first_local_rank_.value + worker),
           .rank = std::to_string(first_rank_.value + worker),
           .host = host_}};
}

void Output::write_log(std::string_view line) {
  auto& console = *err_.console;
  if (console.congested()) {
    ++lost_lines_;
    return;
  }
  if (const auto lost = std::exchange(lost_lines_, 0); lost > 0) {
    const auto note = std::to_string(lost) + " lines of the log were lost: nobody read them";
    console.write(settings_.json ? settings_.json->own_line("warning", note)
                                 : "muster: " + note + "\n");
  }
  console.write(line);
}

}  // namespace muster::agent

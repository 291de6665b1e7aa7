#include "agent/run/folded_lines.hpp"

#include "base/log/wall_time.hpp"
#include "base/posix/wall_clock.hpp"

#include <utility>

namespace muster::agent {
namespace {

RankSet only(std::uint32_t worker) {
  RankSet set;
  set.insert(worker, worker);
  return set;
}

}  // namespace

FoldedConsole::FoldedConsole(boost::asio::io_context& loop, Console& console, Settings settings)
    : console_(console),
      settings_(std::move(settings)),
      has_time_(Prefix(settings_.prefix, settings_.facts).has_time()),
      fold_(settings_.workers),
      timer_(loop) {}

void FoldedConsole::add(std::uint32_t worker, std::string_view text) {
  const auto now = std::chrono::steady_clock::now();
  fold_.add(now, worker, text, has_time_ ? local_clock_time(posix::wall_now()) : std::string());
  show(fold_.take(now));
}

void FoldedConsole::flush() {
  const auto deadline = fold_.next_deadline();
  if (!deadline) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(*deadline);
  timer_.async_wait(life_.guard([this](const boost::system::error_code& error) {
    if (error) return;
    show(fold_.take(std::chrono::steady_clock::now()));
    flush();
  }));
}

Prefix FoldedConsole::prefix_of(const RankSet& workers) const {
  auto facts = settings_.facts;
  facts.rank = workers.text(settings_.first_rank);
  facts.local_rank = workers.text(settings_.first_local_rank);
  return {settings_.prefix, facts};
}

void FoldedConsole::show(const std::vector<Fold::Folded>& lines) {
  if (lines.empty()) return;
  std::string text;
  for (const auto& line : lines) {
    console_.open_line().add(text, this, prefix_of(line.workers).text(line.time),
                             {.text = line.text});
  }
  console_.write_lines(text);
}

FoldedLines::FoldedLines(FoldedConsole& fold, std::uint32_t worker)
    : fold_(fold), worker_(worker), alone_(fold.console(), fold.prefix_of(only(worker))) {}

void FoldedLines::take(const Line& line) {
  const bool is_begun = line.shown > 0 || line.replaces;
  if (line.has_ended && !is_begun) {
    fold_.add(worker_, line.text);
    return;
  }
  fold_.show_through(worker_);
  alone_.take(line);
  alone_.flush();
}

void FoldedLines::flush() { fold_.flush(); }

}  // namespace muster::agent

#include "agent/run/json_lines.hpp"

#include "base/log/wall_time.hpp"
#include "base/posix/wall_clock.hpp"
#include "base/text.hpp"

#include <utility>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <spdlog/formatter.h>

namespace muster::agent {
namespace json = boost::json;
namespace {

class Formatter : public spdlog::formatter {
 public:
  explicit Formatter(std::shared_ptr<const JsonFormat> format) : format_(std::move(format)) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const auto level = spdlog::level::to_string_view(message.level);
    const auto line = format_->own_line({level.data(), level.size()},
                                        {message.payload.data(), message.payload.size()});
    out.append(line.data(), line.data() + line.size());
  }
  [[nodiscard]] std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<Formatter>(format_);
  }

 private:
  std::shared_ptr<const JsonFormat> format_;
};

}  // namespace

std::string JsonFormat::worker_line(Rank rank, std::string_view stream,
                                    std::string_view message) const {
  json::object line{{"ts", utc_time(posix::wall_now())}, {"job", to_utf8(job_)}};
  if (place_) line["node"] = place_->node.value;
  line["rank"] = rank.value;
  if (place_) line["attempt"] = place_->attempt;
  line["stream"] = stream;
  line["message"] = to_utf8(message);
  return json::serialize(line) + "\n";
}

std::string JsonFormat::own_line(std::string_view level, std::string_view message) const {
  json::object line{{"ts", utc_time(posix::wall_now())}, {"job", to_utf8(job_)}};
  if (place_) line["node"] = place_->node.value;
  if (place_) line["attempt"] = place_->attempt;
  line["stream"] = "muster";
  line["level"] = level;
  line["message"] = to_utf8(message);
  return json::serialize(line) + "\n";
}

void log_as_json(Logger& logger, std::shared_ptr<const JsonFormat> format) {
  logger.set_formatter(std::make_unique<Formatter>(std::move(format)));
}

void JsonLines::take(const Line& line) { turn_ += format_.worker_line(rank_, stream_, line.text); }

void JsonLines::flush() {
  console_.write_lines(turn_);
  turn_.clear();
}

}  // namespace muster::agent

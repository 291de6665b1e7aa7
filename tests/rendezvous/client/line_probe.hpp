#pragma once

#include "base/log/log.hpp"
#include "rendezvous/client/line.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <spdlog/sinks/null_sink.h>

/// Every wait of these tests ends here at the latest: far beyond what a busy machine needs.
constexpr std::chrono::seconds kLinePatience{20};

/// A line and all that its handlers were told.
struct LineProbe {
  std::unique_ptr<muster::rendezvous::Line> line;
  std::optional<muster::rendezvous::LineFacts> facts;
  std::vector<muster::ServerMessage> messages;
  std::optional<muster::Error> error;

  /// The first message of a kind; nullptr: none came.
  template <class Kind>
  [[nodiscard]] const Kind* first() const {
    for (const auto& each : messages) {
      if (const auto* const found = std::get_if<Kind>(&each)) return found;
    }
    return nullptr;
  }
  template <class Kind>
  [[nodiscard]] std::size_t count() const {
    std::size_t found = 0;
    for (const auto& each : messages) found += std::holds_alternative<Kind>(each) ? 1 : 0;
    return found;
  }
};

/// A loop for lines, run by the test itself.
class LineBench {
 public:
  [[nodiscard]] std::unique_ptr<LineProbe> dial(muster::rendezvous::LineOptions options) {
    auto probe = std::make_unique<LineProbe>();
    LineProbe& to = *probe;
    probe->line = muster::rendezvous::Line::dial(
        loop_, std::move(options),
        {.on_up = [&to](const muster::rendezvous::LineFacts& facts) { to.facts = facts; },
         .on_message =
             [&to](const muster::ServerMessage& message) { to.messages.push_back(message); },
         .on_down = [&to](const muster::Error& error) { to.error = error; }},
        logger_);
    return probe;
  }

  /// Runs the loop until it is so; false: the patience was over first.
  bool until(const std::function<bool()>& is_so) {
    const auto deadline = std::chrono::steady_clock::now() + kLinePatience;
    loop_.restart();
    while (!is_so()) {
      const auto left = deadline - std::chrono::steady_clock::now();
      if (left <= left.zero() || loop_.run_one_for(left) == 0) return is_so();
    }
    return true;
  }

  boost::asio::io_context& loop() { return loop_; }

 private:
  boost::asio::io_context loop_;
  muster::Logger logger_{"line", std::make_shared<spdlog::sinks::null_sink_mt>()};
};

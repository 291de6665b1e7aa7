#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <spdlog/sinks/base_sink.h>

/// What was logged since it was last taken: a line each, its level before it. Any thread.
class LogLines : public spdlog::sinks::base_sink<std::mutex> {
 public:
  std::string take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(text_, {});
  }

  /// As soon as it has `wanted`, or without it after `patience`.
  std::string take_with(std::string_view wanted, std::chrono::seconds patience) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [&] { return text_.find(wanted) != std::string::npos; });
    return std::exchange(text_, {});
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    text_.append(spdlog::level::to_string_view(message.level).data()).append(" ");
    text_.append(message.payload.data(), message.payload.size()).append("\n");
    changed_.notify_all();
  }
  void flush_() override {}

  std::condition_variable_any changed_;
  std::string text_;
};

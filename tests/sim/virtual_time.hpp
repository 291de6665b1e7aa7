#pragma once

#include "base/ids.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <tuple>
#include <utility>
#include <vector>

namespace muster::sim {

/// What happens when, in the order of true time; at one instant in the order of arrangement.
class EventQueue {
 public:
  [[nodiscard]] TimePoint now() const { return now_; }
  [[nodiscard]] bool empty() const { return events_.empty(); }
  [[nodiscard]] TimePoint next() const { return events_.front().when; }

  void at(TimePoint when, std::function<void()> what) {
    events_.push_back({std::max(when, now_), order_++, std::move(what)});
    std::push_heap(events_.begin(), events_.end());
  }
  void after(Duration delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }

  void run_next() {
    std::pop_heap(events_.begin(), events_.end());
    const auto event = std::move(events_.back());
    events_.pop_back();
    now_ = event.when;
    event.what();
  }

 private:
  struct Event {
    TimePoint when;
    std::uint64_t order;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return std::tie(other.when, other.order) < std::tie(when, order);  // The earliest is on top.
    }
  };

  TimePoint now_{};
  std::vector<Event> events_;
  std::uint64_t order_ = 0;
};

/// A machine's clock: it starts anywhere and runs fast or slow by some millionths.
class Clock {
 public:
  Clock(Duration offset, std::int64_t rate) : offset_(offset), rate_(rate) {}

  [[nodiscard]] TimePoint read(TimePoint truth) const {
    const auto elapsed = truth.time_since_epoch().count();
    return TimePoint(
        Duration(elapsed + elapsed / kMillion * rate_ + elapsed % kMillion * rate_ / kMillion) +
        offset_);
  }
  /// The first instant at which it shows this or more.
  [[nodiscard]] TimePoint when(TimePoint shown) const {
    const auto local = (shown - offset_).time_since_epoch().count();
    auto truth = TimePoint(Duration(local / (kMillion + rate_) * kMillion +
                                    local % (kMillion + rate_) * kMillion / (kMillion + rate_)));
    while (read(truth) < shown) truth += Duration(1);
    return truth;
  }

 private:
  static constexpr std::int64_t kMillion = 1'000'000;

  Duration offset_;
  std::int64_t rate_;
};

/// A small generator of good quality (xorshift64*), quicker to seed than std::mt19937_64.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15U + 0x1234567) {
    for (int i = 0; i < 4; ++i) (*this)();
  }

  std::uint64_t operator()() {
    state_ ^= state_ >> 12U;
    state_ ^= state_ << 25U;
    state_ ^= state_ >> 27U;
    return state_ * 0x2545F4914F6CDD1DU;
  }
  /// 0 .. below - 1.
  std::uint32_t pick(std::uint32_t below) {
    return static_cast<std::uint32_t>(((*this)() >> 32U) % below);
  }
  bool one_in(std::uint32_t n) { return pick(n) == 0; }
  Duration between(Duration least, Duration most) {
    return least + Duration(static_cast<Duration::rep>(
                       (*this)() % (static_cast<std::uint64_t>((most - least).count()) + 1)));
  }

 private:
  std::uint64_t state_;
};

}  // namespace muster::sim

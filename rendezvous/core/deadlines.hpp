#pragma once

#include "base/ids.hpp"

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace muster::rendezvous {

/// At most one deadline for each key. Setting one costs the logarithm of their number and, where
/// the key has one already, no memory; the earliest is at hand.
template <class Key>
class Deadlines {
 public:
  void set(const Key& key, TimePoint when) {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) {
      by_key_.emplace(key, when);
      by_time_.emplace(when, key);
      return;
    }
    if (found->second == when) return;
    auto node = by_time_.extract({found->second, key});
    node.value().first = when;
    by_time_.insert(std::move(node));
    found->second = when;
  }

  void clear(const Key& key) {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return;
    by_time_.erase({found->second, key});
    by_key_.erase(found);
  }

  [[nodiscard]] std::optional<TimePoint> earliest() const {
    if (by_time_.empty()) return std::nullopt;
    return by_time_.begin()->first;
  }

  /// Takes out those that are over, the earliest first.
  [[nodiscard]] std::vector<Key> take_over(TimePoint now) {
    std::vector<Key> over;
    while (!by_time_.empty() && by_time_.begin()->first <= now) {
      over.push_back(by_time_.begin()->second);
      by_key_.erase(over.back());
      by_time_.erase(by_time_.begin());
    }
    return over;
  }

 private:
  std::set<std::pair<TimePoint, Key>> by_time_;
  std::map<Key, TimePoint> by_key_;
};

}  // namespace muster::rendezvous

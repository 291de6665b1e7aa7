#pragma once

#include "rendezvous/core/kv_command.hpp"

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

/// What the store must do, in the plainest words: no limits, no care for speed, every rule written
/// out once more. KvStore is compared with it.
class KvModel {
 public:
  struct Outcome {
    std::string reply;  ///< As on the wire.
    bool is_withheld = false;
    bool is_refused = false;
    std::vector<std::uint64_t> woken;
  };
  Outcome execute(std::uint64_t client, const muster::rendezvous::kv::Command& command);
  void forget(std::uint64_t client);

  [[nodiscard]] std::size_t keys() const { return values_.size(); }
  /// By client: all keys that it still lacks.
  [[nodiscard]] std::map<std::uint64_t, std::multiset<std::string>> pending() const;

 private:
  struct Wait {
    std::uint64_t client;
    bool is_barrier;
    std::set<std::string> lacks;
  };
  class Run;

  [[nodiscard]] bool is_present(const std::string& key) const;
  [[nodiscard]] std::optional<std::int64_t> number_at(const std::string& key) const;

  std::map<std::string, std::string> values_;
  std::map<std::string, std::deque<std::string>> queues_;
  std::list<Wait> waits_;  // In order of arrival.
};

/// A reply of KvStore as on the wire, written apart from the store's encoder.
[[nodiscard]] std::string wire_bytes(const muster::rendezvous::kv::Reply& reply);

/// A command in words, for failures and to compare two.
[[nodiscard]] std::string describe(const muster::rendezvous::kv::Command& command);

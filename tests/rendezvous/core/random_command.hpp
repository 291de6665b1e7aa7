#pragma once

#include "rendezvous/core/kv_command.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Draws commands on few keys and odd values, so that they meet. The last one drawn stays valid.
class RandomCommand {
 public:
  explicit RandomCommand(std::uint64_t seed) : random_(seed) {}

  [[nodiscard]] const muster::rendezvous::kv::Command& next();
  /// 0 to `below` - 1.
  [[nodiscard]] std::size_t draw(std::size_t below) { return random_() % below; }

 private:
  std::string_view key();
  std::string_view value();
  std::vector<std::string_view> keys();

  std::mt19937_64 random_;
  std::vector<std::string_view> keys_;
  std::vector<std::pair<std::string_view, std::string_view>> pairs_;
  muster::rendezvous::kv::Command command_;
};

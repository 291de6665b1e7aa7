#pragma once

#include <cstddef>

/// What it costs a KvStore to keep a thing, beside the thing's own bytes.
namespace muster::rendezvous::kv_cost {

constexpr std::size_t kEntry = 192;
constexpr std::size_t kQueue = 704;  // An empty std::deque allocates this much.
constexpr std::size_t kItem = 40;
constexpr std::size_t kWait = 160;
constexpr std::size_t kRegistration = 64;

}  // namespace muster::rendezvous::kv_cost

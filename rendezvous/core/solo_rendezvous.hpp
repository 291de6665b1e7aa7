#pragma once

#include "base/membership.hpp"
#include "rendezvous/core/rendezvous.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace muster::rendezvous {

/// The rendezvous of a job that has one node only, in that node's process: a Rendezvous with one
/// connection that never breaks, and no lease (protocol.md 2).
///
/// Pure: the same calls give the same orders.
class SoloRendezvous {
 public:
  struct Settings {
    std::uint32_t max_restarts = 0;
    std::optional<std::uint32_t> max_restarts_without_progress;
    Duration restart_backoff{};
    std::uint64_t seed = 0;  ///< Of the rounds' secrets.
  };

  explicit SoloRendezvous(Settings settings);

  /// Orders that follow from a report, to be carried out in order. Before Hello none does.
  [[nodiscard]] std::vector<Order> step(TimePoint now, const Report& report);
  /// Orders that follow from time alone.
  [[nodiscard]] std::vector<Order> tick(TimePoint now);
  [[nodiscard]] std::optional<TimePoint> next_deadline() const {
    return rendezvous_.next_deadline();
  }

 private:
  std::vector<Order> feed(TimePoint now, const Rendezvous::Event& event);

  Settings settings_;
  Rendezvous rendezvous_;
};

}  // namespace muster::rendezvous

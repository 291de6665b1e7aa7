#pragma once

#include "base/membership.hpp"

#include <functional>

namespace muster::rendezvous {

/// An agent's standing line to its job's rendezvous: reports go in, orders come out. On one node
/// both ends are in the process (server/solo_attendance.hpp). Loop thread only.
class Attendance {
 public:
  using OnOrder = std::function<void(const Order&)>;

  virtual ~Attendance() = default;

  /// Where orders go from now on. They come from the loop, never from within a call of this class.
  virtual void on_order(OnOrder handler) = 0;
  virtual void report(Report report) = 0;
};

}  // namespace muster::rendezvous

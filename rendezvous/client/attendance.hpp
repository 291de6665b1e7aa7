#pragma once

#include "base/membership.hpp"

#include <functional>
#include <optional>
#include <string>

namespace muster::rendezvous {

/// An agent's standing line to its job's rendezvous: reports go in, orders come out. On one node
/// both ends are in the process (server/solo_attendance.hpp); on many a connection is between them
/// (agent/run/remote_attendance.hpp). Loop thread only. Handlers are called from the loop, never
/// from within a call of this class.
class Attendance {
 public:
  struct Handlers {
    std::function<void(const Order&)> on_order;
    /// The node's ranks are no longer its own: kill the workers at once, without grace, and report
    /// Empty. What dies of it has not failed.
    std::function<void(const std::string& reason)> on_fence;
    /// Half of the lease is over and the server does not answer.
    std::function<void()> on_half_lease;
    /// There will be no verdict: the node was refused, or the server stayed away. `exit_code` is
    /// protocol.md 5's.
    std::function<void(int exit_code, const std::string& message)> on_giving_up;
  };

  virtual ~Attendance() = default;

  virtual void attend(Handlers handlers) = 0;
  virtual void report(Report report) = 0;

  /// Whether workers may run only while a lease lasts: then this object keeps it on the keeper's
  /// page.
  [[nodiscard]] virtual bool is_leased() const { return false; }
  /// Whether the job's rendezvous is in this process: then a signal ends the workers, and the agent
  /// stays until the job ends, or until another signal. May change until the first Assignment.
  [[nodiscard]] virtual bool hosts_rendezvous() const { return false; }
  /// Our end of the connection, numeric; empty where there is none yet, or none at all.
  [[nodiscard]] virtual std::string local_address() const { return {}; }
  /// This agent leaves, nothing of it is left, and no keeper will say so. Blocks for a little.
  virtual void say_farewell(const std::string& reason) { static_cast<void>(reason); }
};

}  // namespace muster::rendezvous

#pragma once

#include "base/error.hpp"
#include "rendezvous/core/job_view.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace muster::rendezvous {

/// The jobs of a rendezvous server, as operators see and steer them. Loop thread only.
class JobBoard {
 public:
  virtual ~JobBoard() = default;

  [[nodiscard]] virtual std::vector<JobView> jobs() const = 0;
  [[nodiscard]] virtual std::optional<JobView> job(const std::string& id) const = 0;
  /// `done` is called once, from the loop, possibly within this call.
  virtual void command(std::string job, Command command,
                       std::function<void(Result<std::string>)> done) = 0;
};

}  // namespace muster::rendezvous

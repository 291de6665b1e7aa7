#pragma once

#include "agent/run/input_copies.hpp"
#include "agent/run/input_plan.hpp"
#include "base/error.hpp"
#include "base/log/log.hpp"
#include "base/membership.hpp"
#include "base/posix/fd.hpp"

#include <cstdint>
#include <optional>

#include <boost/asio/io_context.hpp>

namespace muster::agent {

/// The standard input of the workers of a round. Loop thread only.
class WorkerInput {
 public:
  WorkerInput(boost::asio::io_context& loop, InputPlan plan, Logger& logger);

  void begin_round(const Assignment& assignment, std::uint32_t workers);
  /// What a worker gets as descriptor 0; none: ours.
  [[nodiscard]] Result<posix::Fd> open(Rank rank);

 private:
  InputPlan plan_;
  Logger& logger_;
  std::optional<InputCopies> copies_;
};

}  // namespace muster::agent

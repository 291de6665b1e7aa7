#pragma once

#include "agent/run/input_copies.hpp"
#include "base/error.hpp"
#include "base/log/log.hpp"
#include "base/membership.hpp"
#include "base/posix/fd.hpp"

#include <cstdint>
#include <optional>

#include <boost/asio/io_context.hpp>

namespace muster::agent {

/// Which workers get our standard input; the others get /dev/null.
struct InputPlan {
  enum class To {
    Inherited,  ///< Each is handed the open file.
    All,        ///< Each gets a copy of the whole input.
    One,        ///< `rank` is handed the open file: a terminal stays one.
    None,
  };
  To to = To::Inherited;
  Rank rank;
};

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

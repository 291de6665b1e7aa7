#include "agent/run/worker_input.hpp"

#include "base/posix/stream.hpp"

namespace muster::agent {

WorkerInput::WorkerInput(boost::asio::io_context& loop, InputPlan plan, Logger& logger)
    : plan_(plan), logger_(logger) {
  if (plan_.to == InputPlan::To::All) copies_.emplace(loop, 0, logger);
}

void WorkerInput::begin_round(const Assignment& assignment, std::uint32_t workers) {
  if (copies_) copies_->begin_round(workers);
  const bool has_no_reader =
      plan_.to == InputPlan::To::One && plan_.rank.value >= assignment.world_size;
  if (has_no_reader && assignment.node_rank == NodeRank{0}) {
    logger_.warn("--stdin {}: nobody reads the input, since the highest rank is {}",
                 plan_.rank.value, assignment.world_size - 1);
  }
}

Result<posix::Fd> WorkerInput::open(Rank rank) {
  if (copies_) return copies_->add_reader(rank);
  const bool is_reader = plan_.to == InputPlan::To::Inherited ||
                         (plan_.to == InputPlan::To::One && plan_.rank == rank);
  return is_reader ? posix::Fd() : posix::open_null();
}

}  // namespace muster::agent

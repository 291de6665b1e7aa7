#include "base/failure_text.hpp"

namespace muster {

std::string how_it_failed(const WorkerFailure& failure) {
  if (failure.cause == Cause::LostNode) return "was lost";
  if (failure.status) return describe(*failure.status);
  return failure.pid == 0 ? "could not be started" : "did not end";
}

}  // namespace muster

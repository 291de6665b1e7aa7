#include "base/failure_text.hpp"

namespace muster {

std::string how_it_failed(const WorkerFailure& failure) {
  if (failure.cause == Cause::LostNode) return "was lost";
  if (failure.status) return describe(*failure.status);
  return failure.pid == 0 ? "could not be started" : "did not end";
}

std::string_view exception_of(std::string_view traceback) {
  const auto text = traceback.substr(0, traceback.find_last_not_of("\n ") + 1);
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace muster

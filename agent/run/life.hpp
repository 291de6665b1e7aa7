#pragma once

#include <memory>
#include <utility>

namespace muster::agent {

/// A member of an object whose handlers a loop may call after its end: what had happened before a
/// timer or a descriptor was destroyed is in the loop's queue, and destroying does not cancel it.
class Life {
 public:
  Life() = default;
  Life(const Life&) = delete;  // Each object has its own.
  Life& operator=(const Life&) = delete;

  /// A handler that does nothing once this is gone.
  template <class Handler>
  [[nodiscard]] auto guard(Handler handler) const {
    return [life = std::weak_ptr(life_), handler = std::move(handler)](auto&&... what) mutable {
      if (!life.expired()) handler(std::forward<decltype(what)>(what)...);
    };
  }

 private:
  std::shared_ptr<bool> life_ = std::make_shared<bool>(true);
};

}  // namespace muster::agent

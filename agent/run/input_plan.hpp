#pragma once

#include "base/ids.hpp"

namespace muster::agent {

/// Which workers get our standard input; the others get /dev/null.
struct InputPlan {
  enum class To {
    Inherited,  ///< Each is handed the open file.
    All,        ///< Each worker of the node gets a copy of the whole input.
    One,        ///< `rank` is handed the open file: a terminal stays one.
    None,
  };
  To to = To::Inherited;
  Rank rank;
};

}  // namespace muster::agent

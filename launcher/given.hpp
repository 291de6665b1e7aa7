#pragma once

#include <functional>
#include <map>
#include <string>

namespace muster::launcher {

/// A value that was given to a flag.
struct Given {
  std::string value;   ///< Of a switch: `1` for on.
  std::string origin;  ///< `--max-restarts` or `PET_MAX_RESTARTS`: whom to blame.
};

/// By the flag's name, without dashes in front.
using GivenFlags = std::map<std::string, Given, std::less<>>;

}  // namespace muster::launcher

#pragma once

#include "base/error.hpp"
#include "launcher/apply.hpp"
#include "launcher/options.hpp"

#include <span>
#include <string_view>

namespace muster::launcher {

/// What a setter looks at beside the options.
struct Context {
  const Given& given;
  const Environment& environment;
  const Machine& machine;
};

/// Gives the options what one flag says.
struct Setter {
  std::string_view flag;
  Result<void> (*set)(Options&, const Context&);
};

/// `--max-restarts: '-1' is not a number of restarts: give an integer ...`.
[[nodiscard]] tl::unexpected<Error> refuse(const Given& given, std::string_view what,
                                           std::string_view right);

/// Those of the flags that say which nodes a job has and how they meet.
[[nodiscard]] std::span<const Setter> node_setters();

/// Those of the flags that say how workers are ended.
[[nodiscard]] std::span<const Setter> stop_setters();

/// Those of the flags that say how output is shown and kept, and who reads the input.
[[nodiscard]] std::span<const Setter> output_setters();

}  // namespace muster::launcher

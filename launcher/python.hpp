#pragma once

#include "base/error.hpp"
#include "launcher/options.hpp"

#include <string>

namespace muster::launcher {

/// The Python that runs the workers.
struct ChosenPython {
  std::string path;  ///< Has a slash.
  std::string why;   ///< `VIRTUAL_ENV is set`
};

/// Chooses it, the first of: PYTHON_EXEC; one beside the path by which we were called, if that
/// folder belongs to a virtual or conda environment; VIRTUAL_ENV; CONDA_PREFIX; python3 or python
/// on PATH. Fails where there is none, or where PYTHON_EXEC names none, saying what was looked at.
[[nodiscard]] Result<ChosenPython> choose_python(const std::string& invoked_as,
                                                 const Environment& environment);

}  // namespace muster::launcher

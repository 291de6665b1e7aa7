#pragma once

#include <span>
#include <string_view>

namespace muster::agent {

/// A file of the Python module that workers may import (worker_sdk/python), as the build found it.
struct PythonFile {
  std::string_view path;  ///< Below the folder that stands on a worker's PYTHONPATH.
  std::string_view text;
  bool is_hook;  ///< Only for workers whose steps are to be tracked.
};

[[nodiscard]] std::span<const PythonFile> python_files();

}  // namespace muster::agent

#pragma once

#include <cstddef>
#include <string>

namespace muster::agent {

/// What a worker recorded of its own end in its TORCHELASTIC_ERROR_FILE.
struct RecordedError {
  std::string text;       ///< The traceback where there is one, else the message.
  std::string complaint;  ///< Why there is no text although there is a file. Empty: all is well.
};

/// An error file that is longer makes no sense.
constexpr std::size_t kMaxErrorFile = std::size_t{1024} * 1024;

/// Reads it in either of torch's formats: `message` an object with `extraInfo.py_callstack`, or
/// plain text. A file that is absent or empty is none.
[[nodiscard]] RecordedError recorded_error(const std::string& path);

}  // namespace muster::agent

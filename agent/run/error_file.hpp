#pragma once

#include <string>

namespace muster::agent {

/// What a worker recorded of its own end in its TORCHELASTIC_ERROR_FILE, in either of torch's
/// formats: `message` an object with `extraInfo.py_callstack`, or plain text. The traceback where
/// there is one, else the message; empty where the file is absent, empty or makes no sense.
[[nodiscard]] std::string recorded_error(const std::string& path);

}  // namespace muster::agent

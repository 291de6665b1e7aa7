#pragma once

#include "base/error.hpp"

#include <string>

namespace muster::rendezvous {

/// The secret that a server shares with agents and operators: the one line of a file that nobody
/// else can read. Printable ASCII without blanks, since it travels as a header of HTTP as well.
[[nodiscard]] Result<std::string> read_token_file(const std::string& path);

}  // namespace muster::rendezvous

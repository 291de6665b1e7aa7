#pragma once

#include "base/endpoint.hpp"
#include "base/membership.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace muster::agent {

/// What the keeper must know to say farewell for an agent that can't any more (protocol.md 3). The
/// agent leaves it in the memory that they share once a connection stands, before its first Hello,
/// and again when it changes.
struct FarewellNote {
  Endpoint server;  ///< Numeric.
  std::optional<std::string> token;
  Farewell farewell;
};

[[nodiscard]] std::string encode(const FarewellNote& note);

/// nullopt: that is no note. The empty text is none: there is nobody to say farewell to.
[[nodiscard]] std::optional<FarewellNote> decode_farewell_note(std::string_view text);

}  // namespace muster::agent

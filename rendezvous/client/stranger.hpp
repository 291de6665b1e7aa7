#pragma once

#include "base/error.hpp"

#include <string>
#include <string_view>

/// What is said of whoever answers on an endpoint and is no server of muster, or does not answer.
namespace muster::rendezvous {

/// `first`: the first bytes that came.
[[nodiscard]] Error not_a_server(const std::string& endpoint, std::string_view first);
[[nodiscard]] Error hung_up(const std::string& endpoint);
[[nodiscard]] Error said_nothing(const std::string& endpoint);
[[nodiscard]] Error speaks_nonsense(const std::string& endpoint, const Error& cause);
/// Its magic names another version of the protocol, and no Refusal came.
[[nodiscard]] Error other_version(const std::string& endpoint, unsigned version);

}  // namespace muster::rendezvous

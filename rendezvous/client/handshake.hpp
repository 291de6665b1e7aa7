#pragma once

#include "base/error.hpp"
#include "rendezvous/client/wire.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

/// A client's half of the handshake, but for the sockets (proto/muster/v1/rendezvous.proto).
namespace muster::rendezvous {

/// What to do about tokens that differ.
constexpr std::string_view kSameToken =
    "give --token-file (or MUSTER_TOKEN_FILE) with the same token to the server and to all nodes";

/// Magic and Open.
[[nodiscard]] std::string opening(const std::string& nonce);

using OpenAnswer = std::variant<Challenge, Refusal>;

/// What a server says to that, from the first bytes that came; nullopt while it is not complete.
/// `taken`: how many bytes it took. Fails on what a server of muster would not say; `endpoint` is
/// named then.
[[nodiscard]] Result<std::optional<OpenAnswer>> read_answer(const std::string& endpoint,
                                                            std::string_view input,
                                                            std::size_t& taken);

/// Why a client that has this token, or none, goes no further; nullopt: the server has shown that
/// it knows the token, or none is needed.
[[nodiscard]] std::optional<Refusal> judge(const std::string& endpoint, const Challenge& challenge,
                                           const std::optional<std::string>& token,
                                           std::string_view client_nonce);

}  // namespace muster::rendezvous

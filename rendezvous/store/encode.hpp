#pragma once

#include "rendezvous/core/kv_command.hpp"

#include <cstddef>
#include <string>

namespace muster::store {

/// How many bytes a reply takes on the wire.
[[nodiscard]] std::size_t encoded_size(const rendezvous::kv::Reply& reply);

/// Appends a reply as all dialects have it; nothing for those that put nothing on the wire.
void encode(const rendezvous::kv::Reply& reply, std::string& out);

/// What a client gets that is woken.
void encode_stop_waiting(std::string& out);

}  // namespace muster::store

#pragma once

#include "base/error.hpp"
#include "rendezvous/core/archive.hpp"

#include <string>
#include <string_view>

/// The end of a job as bytes of a file (proto/muster/v1/state.proto).
namespace muster::rendezvous {

[[nodiscard]] std::string encode_kept(const Archive::Ended& ended);
/// InvalidArgument: the bytes are none of ours.
[[nodiscard]] Result<Archive::Ended> decode_kept(std::string_view bytes);

}  // namespace muster::rendezvous

#pragma once

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/membership.hpp"

#include <optional>
#include <string>

namespace muster::rendezvous {

/// Says farewell on connections of its own, again and again, until the server has acknowledged it
/// or the patience is over: for the keeper, which has no loop. No thread; blocks. A name is looked
/// up by the system's resolver, which keeps its own time: pass the numeric peer of a line where
/// one stood.
///
/// Timeout: the patience is over; the message has the last cause. InvalidArgument: the server
/// refused it (the token), so trying again is pointless.
[[nodiscard]] Result<void> say_farewell(const Endpoint& server,
                                        const std::optional<std::string>& token,
                                        const Farewell& farewell, Duration patience);

}  // namespace muster::rendezvous

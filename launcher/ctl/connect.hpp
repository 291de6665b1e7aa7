#pragma once

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"

#include <memory>

namespace grpc {
class Channel;
}

namespace muster::ctl {

/// A channel on a connection that is there: that nobody listens is found out here, at once and by
/// the system's own words. It is never dialled again.
[[nodiscard]] Result<std::shared_ptr<grpc::Channel>> connect(const Endpoint& server,
                                                             Duration patience);

}  // namespace muster::ctl

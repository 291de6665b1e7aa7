#pragma once

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "launcher/ctl/options.hpp"

#include <string>

namespace muster::ctl {

struct FoundServer {
  Endpoint endpoint;
  std::string token;
};

/// The server that is asked, and the token that it wants: as the flags say, or as the files of the
/// servers that this user runs here do. InvalidArgument: the user must say more.
[[nodiscard]] Result<FoundServer> find_server(const Options& options,
                                              const Environment& environment);

}  // namespace muster::ctl

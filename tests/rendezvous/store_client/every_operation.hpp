#pragma once

#include "rendezvous/store_client/store_client.hpp"

namespace muster::store_client {

/// A running store, and what it is known to be.
struct ServerUnderTest {
  Endpoint endpoint;
  Dialect dialect;  ///< What it really speaks.
  bool has_queues;  ///< Of the servers that could have them, PyTorch's without libuv have none.
};

/// Uses every operation once or more on a fresh client, and checks each answer: what the server has
/// works, what it lacks is refused. Fails the running Catch2 case.
void use_every_operation(const ServerUnderTest& server);

}  // namespace muster::store_client

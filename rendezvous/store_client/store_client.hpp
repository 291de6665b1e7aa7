#pragma once

#include "rendezvous/store_client/store.hpp"

#include <memory>

namespace muster::store_client {

/// A connection to a c10d store: our own or PyTorch's, of any version from 1.13 on. Needs no
/// thread, no signal handler and no loop. Move-only; one thread at a time; not to be used on both
/// sides of a fork.
class StoreClient : public Store {
 public:
  [[nodiscard]] static Result<StoreClient> connect(Endpoint endpoint, ConnectOptions options = {});

  StoreClient(StoreClient&&) noexcept;
  StoreClient& operator=(StoreClient&&) noexcept;
  ~StoreClient();

 private:
  explicit StoreClient(std::unique_ptr<Session> session);

  std::unique_ptr<Session> owned_;
};

}  // namespace muster::store_client

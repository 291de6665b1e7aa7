#include "rendezvous/store_client/store_client.hpp"

#include "rendezvous/store_client/session.hpp"

namespace muster::store_client {

StoreClient::StoreClient(std::unique_ptr<Session> session)
    : Store(*session, session->options().key_prefix, session->options().key_prefix.size()),
      owned_(std::move(session)) {}
StoreClient::StoreClient(StoreClient&&) noexcept = default;
StoreClient& StoreClient::operator=(StoreClient&&) noexcept = default;
StoreClient::~StoreClient() = default;

Result<StoreClient> StoreClient::connect(Endpoint endpoint, ConnectOptions options) {
  auto session = std::make_unique<Session>(std::move(endpoint), std::move(options));
  if (auto connected = session->connect(); !connected) return pass(connected.error());
  return StoreClient(std::move(session));
}

}  // namespace muster::store_client

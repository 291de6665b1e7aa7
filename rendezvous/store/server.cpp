#include "rendezvous/store/server.hpp"

#include "rendezvous/store/loop.hpp"

namespace muster::store {

Result<std::unique_ptr<Server>> Server::start(boost::asio::any_io_executor executor,
                                              posix::Fd bound_socket, ServerOptions options,
                                              Logger& logger) {
  auto loop = Loop::start(std::move(executor), std::move(bound_socket), options, logger);
  if (!loop) return pass(loop.error());
  return std::unique_ptr<Server>(new Server(*std::move(loop)));
}

Server::Server(std::shared_ptr<Loop> loop) : loop_(std::move(loop)) {}

Server::~Server() { loop_->stop(); }

Endpoint Server::endpoint() const { return loop_->endpoint(); }

Stats Server::stats() const { return loop_->stats(); }

std::vector<Waiter> Server::waiters() const { return loop_->waiters(); }

}  // namespace muster::store

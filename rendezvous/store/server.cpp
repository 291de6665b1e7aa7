#include "rendezvous/store/server.hpp"

#include "base/posix/dialling.hpp"
#include "rendezvous/store/loop.hpp"

namespace muster::store {

Result<std::unique_ptr<Server>> Server::start(boost::asio::any_io_executor executor,
                                              posix::Fd bound_socket, ServerOptions options,
                                              Logger& logger) {
  auto loop = Loop::start(executor, std::move(bound_socket), std::move(options), logger);
  if (!loop) return pass(loop.error());
  return std::unique_ptr<Server>(new Server(*std::move(loop)));
}

Result<std::unique_ptr<Server>> Server::start(boost::asio::any_io_executor executor,
                                              ServerOptions options, Logger& logger) {
  return start(std::move(executor), posix::Fd(), std::move(options), logger);
}

Server::Server(std::shared_ptr<Loop> loop) : loop_(std::move(loop)) {}

Server::~Server() { loop_->stop(); }

void Server::adopt(posix::Fd socket) {
  const auto peer = to_peer(posix::peer_address(socket.get()));
  loop_->adopt(std::move(socket), peer);
}

Result<void> Server::admit(const std::string& address) {
  const auto parsed = parse_address(address);
  if (!parsed) return pass(parsed.error());
  loop_->door().admitted.insert(*parsed);
  return {};
}

void Server::on_turned_away(std::function<void(const std::string&)> handler) {
  loop_->on_turned_away(std::move(handler));
}

Endpoint Server::endpoint() const { return loop_->endpoint(); }

Stats Server::stats() const { return loop_->stats(); }

std::vector<Waiter> Server::waiters() const { return loop_->waiters(); }

}  // namespace muster::store

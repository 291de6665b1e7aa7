#include "rendezvous/store/loop.hpp"

#include <cerrno>
#include <chrono>

namespace muster::store {
namespace {

/// Accepted in one go; those beyond come next turn, so that open connections are served too.
constexpr int kAcceptsPerTurn = 256;

/// Out of descriptors or memory: how long until the next attempt, if no connection of ours closes.
constexpr std::chrono::milliseconds kAcceptPause{250};

}  // namespace

void Server::Loop::accept_some() {
  for (int count = 0; count < kAcceptsPerTurn; ++count) {
    auto accepted = posix::accept_now(listener_.get());
    if (accepted.error == 0) {
      adopt(std::move(accepted.socket), to_peer(accepted.peer));
    } else if (accepted.error == EAGAIN || accepted.error == EWOULDBLOCK) {
      if (is_exhausted_) logger_.info("store accepts connections again");
      is_exhausted_ = false;
      return;
    } else if (!posix::concerns_one_connection(accepted.error)) {
      pause_accepting(accepted.error);
      return;
    }
  }
}

void Server::Loop::adopt(posix::Fd socket, const Peer& peer) {
  const auto& limits = interpreter_.rules().limits;
  if (connections_.size() >= limits.connections) {
    refusals_.refused(
        now(), to_endpoint(peer),
        "the limit of all connections is reached: " + std::to_string(limits.connections));
    return;
  }
  if (connections_.from_address_of(peer) >= limits.connections_per_address) {
    refusals_.refused(now(), to_endpoint(peer),
                      "the limit of connections from one address is reached: " +
                          std::to_string(limits.connections_per_address));
    return;
  }
  Connection& connection = connections_.open(std::move(socket), peer, interpreter_.rules());
  connection.interest = EPOLLIN;
  const auto added = set_.add(connection.socket.get(), EPOLLIN, connection.id.value);
  if (!added) refuse(connection, added.error().message);
}

/// The connections stay in the kernel's queue: none is lost.
void Server::Loop::pause_accepting(int error) {
  if (!is_exhausted_) {
    logger_.warn(
        "store can't accept connections for now reason=\"{}\" open={}; they wait until one "
        "closes, or the open-file limit (ulimit -n) must be raised",
        posix::errno_text(error), connections_.size());
  }
  is_exhausted_ = true;
  is_accepting_ = false;
  static_cast<void>(set_.change(listener_.get(), 0, kListener));
  accept_timer_.expires_after(kAcceptPause);
  accept_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& failed) {
    if (!failed && !self->is_stopped_) self->resume_accepting();
  });
}

void Server::Loop::resume_accepting() {
  if (is_accepting_) return;
  is_accepting_ = true;
  if (!listener_) return;
  static_cast<void>(set_.change(listener_.get(), EPOLLIN, kListener));
}

void Server::Loop::close(Connection& connection) {
  interpreter_.store().forget(connection.id);
  end_partial(connection);
  buffered_ -= connection.accounted;
  connections_.close(connection);
  resume_accepting();
}

void Server::Loop::refuse(Connection& connection, std::string_view reason) {
  refusals_.refused(now(), to_endpoint(connection.peer), reason);
  dismiss(connection);
}

}  // namespace muster::store

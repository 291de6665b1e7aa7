#include "rendezvous/store/loop.hpp"

#include <array>

namespace muster::store {

/// Replies are due for what came before that which was refused: they are sent, then the end. Until
/// the client has them what it sends is thrown away, since closing a socket with unread bytes
/// resets the connection, which discards what is on its way to the client.
void Server::Loop::dismiss(Connection& connection) {
  interpreter_.store().forget(connection.id);
  end_partial(connection);
  connection.held_until.reset();
  connection.is_paused = false;
  connection.is_dismissed = true;
  std::string().swap(connection.in);
  settle_account(connection);
  if (!see_off(connection)) return;
  farewells_.emplace_back(now() + interpreter_.rules().limits.farewell, connection.id);
  if (farewells_.size() == 1) arm_farewell_timer();
}

bool Server::Loop::see_off(Connection& connection) {
  static_cast<void>(send(connection, connection.out));  // What is there already needs no room.
  const int socket = connection.socket.get();
  if (!connection.has_finished) {
    std::array<char, 16 * kKiB> ignored_bytes;  // Another's requests may still be in received_.
    const auto ignored = posix::receive_now(socket, ignored_bytes);
    if (ignored.end == posix::Moved::End::Broken) {
      close(connection);
      return false;
    }
    connection.has_finished = ignored.end == posix::Moved::End::Finished;
  }
  if (connection.out.empty()) {
    // Of one that sends no more the kernel sees to what is on its way.
    if (connection.has_finished || posix::unacknowledged_bytes(socket) == 0) {
      close(connection);
      return false;
    }
    posix::finish_sending(socket);
  }
  set_interest(connection);
  return true;
}

void Server::Loop::arm_farewell_timer() {
  farewell_timer_.expires_at(farewells_.front().first);
  farewell_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && !self->is_stopped_) self->end_farewells();
  });
}

void Server::Loop::end_farewells() {
  now_.reset();
  while (!farewells_.empty() && farewells_.front().first <= now()) {
    if (auto* const connection = connections_.find(farewells_.front().second)) close(*connection);
    farewells_.pop_front();
  }
  if (!farewells_.empty()) arm_farewell_timer();
}

}  // namespace muster::store

#include "rendezvous/store/loop.hpp"

#include <chrono>

#include <spdlog/fmt/fmt.h>

namespace muster::store {
namespace {

/// How long something may be on its way behind the key of an opcode 8 before it is taken for A's.
/// B sends both in one piece; A's clients wait this long for each first deletion.
constexpr std::chrono::milliseconds kUndecidedTime{50};

/// The sweep looks so many times during the longest that a request may take.
constexpr int kSweepsPerLimit = 4;

}  // namespace

void Server::Loop::hold(Connection& connection) {
  connection.held_until = now() + kUndecidedTime;
  holds_.emplace_back(*connection.held_until, connection.id);
  if (holds_.size() == 1) arm_hold_timer();
}

void Server::Loop::arm_hold_timer() {
  hold_timer_.expires_at(holds_.front().first);
  hold_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && !self->is_stopped_) self->settle_held();
  });
}

void Server::Loop::settle_held() {
  now_.reset();
  while (!holds_.empty() && holds_.front().first <= now()) {
    const auto [until, client] = holds_.front();
    holds_.pop_front();
    Connection* const connection = connections_.find(client);
    if (connection == nullptr || connection->held_until != until) continue;
    connection->decoder.settle_for_a();
    if (digest(*connection, {})) set_interest(*connection);
  }
  send_to_woken();
  if (!holds_.empty()) arm_hold_timer();
}

void Server::Loop::begin_partial(Connection& connection) {
  if (!connection.partial_since) ++partials_;
  connection.partial_since = now();
  if (!is_sweep_armed_) arm_sweep_timer();
}

void Server::Loop::end_partial(Connection& connection) {
  if (connection.partial_since) --partials_;
  connection.partial_since.reset();
}

void Server::Loop::arm_sweep_timer() {
  is_sweep_armed_ = true;
  sweep_timer_.expires_after(interpreter_.rules().limits.partial_request / kSweepsPerLimit);
  sweep_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && !self->is_stopped_) self->sweep_partials();
  });
}

void Server::Loop::sweep_partials() {
  now_.reset();
  const Duration limit = interpreter_.rules().limits.partial_request;
  connections_.for_each([&](Connection& connection) {
    if (!connection.partial_since || now() - *connection.partial_since < limit) return;
    refuse(connection, fmt::format("a request did not come to its end within {:g} s",
                                   std::chrono::duration<double>(limit).count()));
  });
  is_sweep_armed_ = false;
  if (partials_ != 0) arm_sweep_timer();
}

}  // namespace muster::store

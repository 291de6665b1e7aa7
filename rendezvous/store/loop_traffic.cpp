#include "rendezvous/store/buffer.hpp"
#include "rendezvous/store/encode.hpp"
#include "rendezvous/store/loop.hpp"

#include <algorithm>
#include <utility>

namespace muster::store {
namespace {

constexpr std::size_t kKeptBytes = 4 * kKiB;  // Of an empty buffer of a connection.
constexpr std::size_t kKeptDueBytes = kMiB;   // Of the one buffer that they share.

/// The shared buffer may take so much whatever the connections hold: those whose replies are taken
/// at once don't suffer from those that don't take theirs. What it takes beyond is counted as the
/// connection's before it is taken.
constexpr std::size_t kFreeDueBytes = 4 * kMiB;

/// Replies that a connection is given in one turn. A request of one byte can ask for megabytes, and
/// a client that takes them all would keep everybody else waiting until it has none left.
constexpr std::size_t kTurnBytes = 4 * kMiB;

}  // namespace

bool Server::Loop::receive(Connection& connection) {
  const auto moved = posix::receive_now(connection.socket.get(), received_);
  switch (moved.end) {
    case posix::Moved::End::None: {
      const std::string_view fresh(received_.data(), moved.bytes);
      if (!connection.is_inside) return let_in(connection, fresh);
      return digest(connection, fresh);
    }
    case posix::Moved::End::WouldBlock:
      return true;
    case posix::Moved::End::Finished:
      // What it sent before was executed already, or is now. What it waits for comes too late.
      connection.has_finished = true;
      return digest(connection, {});
    case posix::Moved::End::Broken:
      break;
  }
  close(connection);
  return false;
}

bool Server::Loop::digest(Connection& connection, std::string_view fresh) {
  const std::size_t unsent_limit = interpreter_.rules().limits.unsent_bytes;
  const std::size_t before = connection.in.size();
  std::string_view input = fresh;
  if (!connection.in.empty()) {
    if (!make_room(connection, connection.in, before + fresh.size())) return false;
    connection.in.append(fresh);
    input = connection.in;
  }
  std::size_t done = 0;
  std::size_t replied = 0;
  Interpreter::Turn turn{};
  for (;;) {
    std::string& due = connection.out.empty() ? due_ : connection.out;
    turn = interpreter_.run(
        connection.decoder, connection.id, input.substr(done), due,
        {.full_at = connection.sent + unsent_limit, .heap_bytes = room_for(connection, due)});
    done += turn.consumed;
    if (turn.began_to_wait) connection.waiting_since = now();
    mark_woken();
    replied += due.size();
    if (!send(connection, due)) return false;
    if (turn.stop == Interpreter::Stop::Full && replied < kTurnBytes &&
        connection.out.size() - connection.sent < unsent_limit) {
      continue;
    }
    if (turn.stop != Interpreter::Stop::Undecided || !connection.has_finished) break;
    connection.decoder.settle_for_a();  // Nothing more can come behind the key.
  }
  if (turn.stop == Interpreter::Stop::Refused) {
    refuse_speech(connection, input.substr(done));
    return false;
  }

  if (!keep_rest(connection, input, done)) return false;
  connection.is_paused = turn.stop == Interpreter::Stop::Full;
  connection.held_until.reset();
  if (turn.stop == Interpreter::Stop::Undecided) hold(connection);
  if (connection.is_paused || connection.held_until || connection.in.empty()) {
    end_partial(connection);
  } else if (!connection.partial_since || done != 0 || has_gone_on(before, connection.in.size())) {
    begin_partial(connection);
  }
  if (connection.has_finished && !connection.is_paused) {
    interpreter_.store().forget(connection.id);
    if (connection.out.empty()) {
      close(connection);
      return false;
    }
  }
  settle_account(connection);
  return true;
}

/// Whether a request has come so much further that its time begins anew.
bool Server::Loop::has_gone_on(std::size_t before, std::size_t after) const {
  const std::size_t step = interpreter_.rules().limits.value_bytes;
  return before / step != after / step;
}

/// Moves what was not consumed to where it waits for the rest.
bool Server::Loop::keep_rest(Connection& connection, std::string_view input, std::size_t done) {
  if (done == input.size()) {
    empty(connection.in, kKeptBytes);
  } else if (connection.in.empty()) {
    if (!make_room(connection, connection.in, input.size() - done)) return false;
    connection.in.assign(input.substr(done));
  } else {
    connection.in.erase(0, done);
  }
  return true;
}

/// How much memory a buffer of the connection may take, given what all others hold.
std::size_t Server::Loop::room_for(const Connection& connection, const std::string& buffer) const {
  const bool is_shared = &buffer == &due_;
  std::size_t others = buffered_ - connection.accounted;
  others += heap_bytes(connection.in) + heap_bytes(connection.out);
  if (!is_shared) others -= heap_bytes(buffer);
  const std::size_t limit = interpreter_.rules().limits.buffered_bytes;
  const std::size_t left = others < limit ? limit - others : 0;
  return is_shared ? std::max(left, kFreeDueBytes) : left;
}

/// Before a buffer of the connection gets `size` bytes long.
bool Server::Loop::make_room(Connection& connection, std::string& buffer, std::size_t size) {
  if (size <= buffer.capacity()) return true;
  if (heap_bytes_at(buffer, size) <= room_for(connection, buffer)) return true;
  refuse(connection, over_buffered_bytes(interpreter_.rules().limits));
  return false;
}

void Server::Loop::settle_account(Connection& connection) {
  const std::size_t held = heap_bytes(connection.in) + heap_bytes(connection.out);
  buffered_ += held;
  buffered_ -= connection.accounted;
  connection.accounted = held;
}

/// Sends as much of `due` as the kernel takes, and leaves the rest in `connection.out`.
bool Server::Loop::send(Connection& connection, std::string& due) {
  if (due.empty()) return true;
  const bool is_rest = &due == &connection.out;
  const std::size_t sent = is_rest ? connection.sent : 0;
  const auto moved = posix::send_now(connection.socket.get(), std::string_view(due).substr(sent));
  const std::size_t gone = sent + moved.bytes;
  // A lost connection takes no replies, but what it sent before it was lost is still to be read.
  const bool is_over = gone == due.size() || moved.end == posix::Moved::End::Broken;
  if (is_rest) {
    connection.sent = is_over ? 0 : gone;
    if (is_over) {
      empty(connection.out, kKeptBytes);
    } else if (gone > connection.out.size() / 2) {
      // One that takes slowly but steadily, and asks for more all the time, never takes the last
      // byte.
      connection.out.erase(0, std::exchange(connection.sent, 0));
    }
    settle_account(connection);
    return true;
  }
  bool fits = true;
  if (!is_over && due.capacity() > kFreeDueBytes) {
    connection.out.swap(due);  // It was counted; a copy would have to be, too.
    connection.sent = gone;
  } else if (!is_over) {
    fits = make_room(connection, connection.out, due.size() - gone);
    if (fits) connection.out.assign(due, gone);
  }
  empty(due, kKeptDueBytes);
  return fits;
}

void Server::Loop::refuse_speech(Connection& connection, std::string_view input) {
  const auto [reason, is_unknown] = interpreter_.refusal();
  const auto peer = to_endpoint(connection.peer);
  if (is_unknown) {
    refusals_.unknown_dialect(now(), peer, reason, input);
  } else {
    refusals_.refused(now(), peer, reason);
  }
  dismiss(connection);
}

void Server::Loop::mark_woken() {
  for (const KvClient client : interpreter_.woken()) {
    Connection* const connection = connections_.find(client);
    if (connection == nullptr || connection->is_dismissed) continue;
    if (!make_room(*connection, connection->out, connection->out.size() + 1)) continue;
    encode_stop_waiting(connection->out);
    settle_account(*connection);
    if (connection->is_woken) continue;
    connection->is_woken = true;
    woken_.push_back(client);
  }
  interpreter_.woken().clear();
}

void Server::Loop::set_interest(Connection& connection) {
  const bool reads = !connection.is_paused && !connection.has_finished;
  // One that is paused goes on when its replies are taken: at once, if it only had its turn.
  const bool writes = !connection.out.empty() || connection.is_paused;
  const std::uint32_t wanted = (reads ? EPOLLIN : 0U) | (writes ? EPOLLOUT : 0U);
  if (wanted == connection.interest) return;
  connection.interest = wanted;
  static_cast<void>(set_.change(connection.socket.get(), wanted, connection.id.value));
}

}  // namespace muster::store

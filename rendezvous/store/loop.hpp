#pragma once

#include "base/posix/epoll.hpp"
#include "base/posix/server_socket.hpp"
#include "rendezvous/store/connections.hpp"
#include "rendezvous/store/interpreter.hpp"
#include "rendezvous/store/refusal_log.hpp"
#include "rendezvous/store/server.hpp"

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

namespace muster::store {

/// The server's life on the process's loop. The connections are members of an epoll set of their
/// own, and the process's loop watches that: with many of them busy, one turn serves all, at the
/// price of a bare epoll loop (Asio's own reads cost a tenth more).
///
/// A turn reads once from each connection that has something, executes it and sends what it is due;
/// then it sends to those that were woken, in the order in which they came. Handlers that Asio
/// holds keep the object alive, and do nothing after `stop`.
class Server::Loop : public std::enable_shared_from_this<Loop> {
 public:
  /// Without a listener it has the connections only that `adopt` is given.
  static Result<std::shared_ptr<Loop>> start(const boost::asio::any_io_executor& executor,
                                             posix::Fd listener, ServerOptions options,
                                             Logger& logger);
  /// `watched` is another descriptor of `set`.
  Loop(const boost::asio::any_io_executor& executor, posix::Fd listener, posix::EpollSet set,
       posix::Fd watched, ServerOptions options, Logger& logger);
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Closes the listener and all connections.
  void stop();

  /// The door for a connection that somebody else accepted: its socket doesn't block, is
  /// close-on-exec and tuned for requests.
  void adopt(posix::Fd socket, const Peer& peer);
  [[nodiscard]] Door& door() { return door_; }
  void on_turned_away(std::function<void(const std::string&)> handler);

  [[nodiscard]] Endpoint endpoint() const { return endpoint_; }
  [[nodiscard]] Stats stats() const;
  [[nodiscard]] std::vector<Waiter> waiters();

 private:
  /// The name of the listener in the epoll set; no connection's, as those count up from 0.
  static constexpr std::uint64_t kListener = ~std::uint64_t{0};

  // The turn (loop.cpp).
  void watch();
  void turn();
  void serve(Connection& connection, std::uint32_t events);
  void send_to_woken();
  [[nodiscard]] TimePoint now();

  // Connections come and go (loop_accept.cpp).
  void accept_some();
  void pause_accepting(int error);
  void resume_accepting();
  void close(Connection& connection);
  /// Says why, and dismisses it.
  void refuse(Connection& connection, std::string_view reason);

  // Who may come (loop_door.cpp). False: the connection was closed or dismissed.
  [[nodiscard]] bool let_in(Connection& connection, std::string_view fresh);
  [[nodiscard]] bool hear_knock(Connection& connection, std::string_view fresh);
  void turn_away(Connection& connection);

  // Connections that were refused (loop_farewell.cpp).
  /// Closes it, at once if there is nothing that it has not got.
  void dismiss(Connection& connection);
  /// Goes on with that. False: the connection was closed.
  bool see_off(Connection& connection);
  void arm_farewell_timer();
  void end_farewells();

  // What they say (loop_traffic.cpp). False: the connection was closed or dismissed.
  [[nodiscard]] bool receive(Connection& connection);
  [[nodiscard]] bool digest(Connection& connection, std::string_view fresh);
  [[nodiscard]] std::size_t room_for(const Connection& connection, const std::string& buffer) const;
  [[nodiscard]] bool make_room(Connection& connection, std::string& buffer, std::size_t size);
  void settle_account(Connection& connection);
  [[nodiscard]] bool send(Connection& connection, std::string& due);
  void refuse_speech(Connection& connection, std::string_view input);
  void mark_woken();
  [[nodiscard]] bool has_gone_on(std::size_t before, std::size_t after) const;
  [[nodiscard]] bool keep_rest(Connection& connection, std::string_view input, std::size_t done);
  void set_interest(Connection& connection);

  // Time limits (loop_time.cpp).
  void hold(Connection& connection);
  void arm_hold_timer();
  void settle_held();
  void begin_partial(Connection& connection);
  void end_partial(Connection& connection);
  void arm_sweep_timer();
  void sweep_partials();

  posix::Fd listener_;
  posix::EpollSet set_;
  boost::asio::posix::stream_descriptor watched_;  // The set.
  boost::asio::steady_timer accept_timer_;
  boost::asio::steady_timer hold_timer_;
  boost::asio::steady_timer sweep_timer_;
  boost::asio::steady_timer farewell_timer_;
  Logger& logger_;
  RefusalLog refusals_;
  Endpoint endpoint_;
  bool is_stopped_ = false;

  Door door_;
  std::function<void(const std::string&)> on_turned_away_;
  std::map<Address, TimePoint> turned_away_;  // Whom lately: not each of their tries is told.

  Connections connections_;
  Interpreter interpreter_;
  std::size_t buffered_ = 0;

  bool is_accepting_ = true;
  bool is_exhausted_ = false;  // Connections are waiting in the queue that can't be accepted.

  std::deque<std::pair<TimePoint, KvClient>> holds_;  // In order of time.
  std::deque<std::pair<TimePoint, KvClient>> farewells_;
  std::size_t partials_ = 0;
  bool is_sweep_armed_ = false;

  std::optional<TimePoint> now_;  // Read once a turn.
  std::vector<KvClient> woken_;   // To send to at the end of the turn.
  std::string due_;               // What the connection being served gets.
  std::array<char, 64 * kKiB> received_;
};

}  // namespace muster::store

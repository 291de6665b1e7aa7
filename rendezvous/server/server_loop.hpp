#pragma once

#include "base/posix/epoll.hpp"
#include "base/posix/server_socket.hpp"
#include "rendezvous/client/wire.hpp"
#include "rendezvous/server/http_sessions.hpp"
#include "rendezvous/server/link.hpp"
#include "rendezvous/server/server.hpp"
#include "rendezvous/store/refusal_log.hpp"

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

namespace muster::rendezvous {

/// The server's life on the process's loop: sockets in, events to the core, its actions out.
///
/// As in the store, the connections are members of an epoll set of their own that the process's
/// loop watches. A turn reads once from each connection that has something and hands the core what
/// came; at its end each connection is sent what it is due, in one piece. The clock is read after
/// the bytes: a ping is answered as of a time when it was there.
///
/// Handlers that Asio holds keep the object alive, and do nothing after `stop`.
class Server::Loop : public std::enable_shared_from_this<Loop> {
 public:
  static Result<std::shared_ptr<Loop>> start(boost::asio::io_context& loop, Options options,
                                             Logger& logger);
  /// `watched` is another descriptor of `set`.
  Loop(boost::asio::io_context& loop, Options options, posix::EpollSet set, posix::Fd watched,
       Logger& logger);
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void retire() { is_retiring_ = true; }
  void stop();

  [[nodiscard]] Endpoint endpoint() const { return endpoint_; }
  void abandon(const std::string& reason);
  [[nodiscard]] std::size_t job_count() const { return core_.job_count(); }
  [[nodiscard]] std::vector<JobView> jobs() const;
  [[nodiscard]] std::optional<JobView> job(const std::string& id) const;
  [[nodiscard]] std::optional<Archive::Ended> ended(const std::string& id) const;
  [[nodiscard]] Stats stats() const;
  void command(std::string job, Command command, std::function<void(Result<std::string>)> done);

  std::function<void(const Rendezvous::Note&)> on_note;
  std::function<void(const std::string&, const Verdict&)> on_ended;
  std::function<void(posix::Fd, std::string)> on_grpc;

 private:
  /// The names of the listeners in the epoll set count down from here; those of links count up.
  static constexpr std::uint64_t kFirstListener = ~std::uint64_t{0};

  // The turn (server_loop.cpp).
  void watch();
  void turn();
  void serve(Link& link, std::uint32_t events);
  void finish_turn();
  [[nodiscard]] bool is_listener(std::uint64_t name) const;

  // The core (server_core.cpp).
  void feed(Rendezvous::Event event);
  void pump();
  void perform(Rendezvous::Action& action);
  void act(Rendezvous::Send& action);
  void act(Rendezvous::Acknowledge& action);
  void act(Rendezvous::Close& action);
  void act(Rendezvous::Answer& action);
  void act(Rendezvous::Note& action);
  void act(Rendezvous::OpenStore& action);
  void act(Rendezvous::CloseStore& action);
  void act(Rendezvous::Ended& action);
  [[nodiscard]] bool may_keep_store(const std::string& job) const;
  [[nodiscard]] std::string store_is_taken() const;
  void arm_core_timer();
  void tell_ended();

  // Connections come and go (server_accept.cpp).
  void accept_some(int listener);
  /// Descriptors that connections of all kinds take.
  [[nodiscard]] std::size_t taken() const;
  void admit(posix::Fd socket, const store::Peer& peer);
  void pause_accepting(int error);
  void resume_accepting();
  /// At once. The core is told, if it knew the link.
  void close(Link& link);
  void refuse(Link& link, std::string_view reason);
  /// After what it is due.
  void see_off(Link& link);
  /// The link is gone; its socket is still in the epoll set.
  [[nodiscard]] posix::Fd release(Link& link);
  void end_overdue();
  void arm_overdue_timer();
  [[nodiscard]] Result<std::unique_ptr<store::Server>> make_store(store::Door door);

  // What a connection speaks (server_first_bytes.cpp).
  void identify(Link& link);
  void hand_to_grpc(Link& link);
  void hand_to_http(Link& link);
  void hand_to_store(Link& link);
  [[nodiscard]] HttpReply answer_http(const std::string& target) const;
  /// Out of our hands. The link is gone.
  [[nodiscard]] posix::Fd hand_over(Link& link);

  // The attendance (server_attendance.cpp). False: the link is gone, or no longer read.
  bool receive(Link& link);
  bool digest(Link& link, std::string_view fresh);
  [[nodiscard]] bool take_magic(Link& link, std::string_view& input);
  [[nodiscard]] bool take(Link& link, ClientFrame frame);
  [[nodiscard]] bool take(Link& link, Open& open);
  [[nodiscard]] bool take(Link& link, Greeting& greeting);
  [[nodiscard]] bool take(Link& link, Parting& parting);
  [[nodiscard]] bool take(Link& link, Unproven& unproven);
  [[nodiscard]] bool take(Link& link, AgentMessage& message);
  [[nodiscard]] bool out_of_turn(Link& link);
  [[nodiscard]] bool reject(Link& link, const std::string& text);
  [[nodiscard]] bool keep_rest(Link& link, std::string_view rest);
  /// `what`: Challenge, PartingSeen or ServerMessage.
  template <class What>
  void send(Link& link, const What& what);
  /// Whether there is room for more; the link is gone if not.
  [[nodiscard]] bool has_room(Link& link);
  void mark_dirty(Link& link);
  void flush(Link& link);
  void set_interest(Link& link);

  boost::asio::io_context& loop_;
  Options options_;
  posix::EpollSet set_;
  boost::asio::posix::stream_descriptor watched_;  // The set.
  boost::asio::steady_timer accept_timer_;
  boost::asio::steady_timer overdue_timer_;
  boost::asio::steady_timer core_timer_;
  Logger& logger_;
  store::RefusalLog refusals_;
  Endpoint endpoint_;
  bool is_retiring_ = false;
  bool is_stopped_ = false;

  Links links_;
  /// A second descriptor of each connection that is gRPC's, by the name of the link that it was: a
  /// member of the epoll set, which tells of its end and of nothing else.
  std::unordered_map<std::uint64_t, posix::Fd> grpc_;
  std::size_t buffered_ = 0;                             // Beginnings of frames.
  std::size_t attendances_ = 0;                          // Links that the core knows as such.
  std::vector<LinkId> dirty_;                            // To send to at the end of the turn.
  std::deque<std::pair<TimePoint, LinkId>> handshakes_;  // In order of time.
  std::deque<std::pair<TimePoint, LinkId>> farewells_;
  bool is_accepting_ = true;
  bool is_exhausted_ = false;  // Connections are waiting that can't be accepted.

  Rendezvous core_;
  std::deque<Rendezvous::Event> events_;  // That the core has not seen yet.
  bool is_pumping_ = false;
  std::optional<TimePoint> core_timer_at_;
  std::vector<Rendezvous::Ended> ended_;  // To be told at the end of the turn.
  std::uint64_t last_command_ = 0;
  std::map<std::uint64_t, std::function<void(Result<std::string>)>> commands_;

  std::unique_ptr<store::Server> store_;  // nullptr: it takes no connection.
  std::optional<std::string> store_job_;  // Whose workers' it is.
  std::unique_ptr<HttpSessions> http_;

  std::array<char, 64 * 1024> received_;
};

template <class What>
void Server::Loop::send(Link& link, const What& what) {
  if (!has_room(link)) return;
  encode(what, link.out);
  mark_dirty(link);
}

}  // namespace muster::rendezvous

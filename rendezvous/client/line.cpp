#include "rendezvous/client/line.hpp"

#include "base/assert.hpp"
#include "base/exit_codes.hpp"
#include "base/posix/dialling.hpp"
#include "base/posix/server_socket.hpp"
#include "rendezvous/client/dialler.hpp"
#include "rendezvous/client/frames.hpp"
#include "rendezvous/client/handshake.hpp"
#include "rendezvous/client/stranger.hpp"
#include "rendezvous/client/wire.hpp"

#include <array>
#include <utility>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>

namespace muster::rendezvous {
namespace {

/// What the peer has not confirmed for so long is lost: longer than the agent waits for an answer
/// before it dials again.
constexpr std::chrono::seconds kUserTimeout{30};

}  // namespace

class Line::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::io_context& loop, LineOptions options, Handlers handlers, Logger& logger)
      : loop_(loop),
        socket_(loop),
        options_(std::move(options)),
        handlers_(std::make_shared<const Handlers>(std::move(handlers))),
        logger_(logger) {}

  void begin() {
    dialler_.emplace(loop_,
                     Dialler::Options{.server = options_.server,
                                      .local_address = options_.local_address,
                                      .patience = options_.patience,
                                      .silence = kSilence},
                     [line = weak_from_this()](Result<Dialler::Answer> answer) {
                       if (const auto self = line.lock()) self->answered(std::move(answer));
                     });
  }

  void send(const AgentMessage& message);
  void hang_up();

 private:
  void answered(Result<Dialler::Answer> answer);
  void greet(const Hello& hello);
  void refuse(Refusal refusal);
  void flush();
  void watch_writable();
  void read_on();
  void read();
  void digest();
  void deliver(ServerMessage message);
  void go_down(Error error);
  void go_down_soon(Error error);

  boost::asio::io_context& loop_;
  boost::asio::posix::stream_descriptor socket_;
  LineOptions options_;
  // nullptr once the line is down or gone. Whoever calls one keeps all: it may destroy the line.
  std::shared_ptr<const Handlers> handlers_;
  Logger& logger_;
  std::optional<Dialler> dialler_;

  std::string endpoint_;  // Of the peer, numeric.
  Challenge challenge_;
  std::string nonce_;
  std::optional<Refusal> refusal_;  // Answers the Hello.
  bool has_greeted_ = false;
  bool is_writing_ = false;
  bool is_over_ = false;
  std::string in_;
  std::string out_;
};

void Line::Connection::answered(Result<Dialler::Answer> answer) {
  auto result = std::move(answer);
  dialler_.reset();
  if (!result) return go_down(std::move(result.error()));
  socket_.assign(result->socket.release());
  posix::set_user_timeout(socket_.native_handle(), kUserTimeout);
  const auto peer = posix::to_endpoint(posix::peer_address(socket_.native_handle()));
  const auto local = posix::to_endpoint(posix::local_address(socket_.native_handle()));
  endpoint_ = to_string(peer);
  nonce_ = std::move(result->nonce);
  in_ = std::move(result->rest);
  if (auto* const refusal = std::get_if<Refusal>(&result->said)) {
    refusal_ = std::move(*refusal);
  } else {
    challenge_ = std::get<Challenge>(std::move(result->said));
    refusal_ = judge(endpoint_, challenge_, options_.token, nonce_);
  }
  logger_.debug("line up server={} from={} version={}", endpoint_, local.host, challenge_.version);
  if (!refusal_) read_on();
  const auto handlers = handlers_;
  if (handlers->on_up) handlers->on_up({.local = local.host, .peer = peer.host});
}

void Line::Connection::send(const AgentMessage& message) {
  if (is_over_ || !socket_.is_open()) return;
  if (const auto* const report = std::get_if<Report>(&message)) {
    if (const auto* const hello = std::get_if<Hello>(report)) return greet(*hello);
  }
  MUSTER_ASSERT(has_greeted_);
  if (refusal_) return;
  encode(message, out_);
  flush();
}

void Line::Connection::greet(const Hello& hello) {
  has_greeted_ = true;
  if (refusal_) {
    encode(Unproven{hello.name, refusal_->message}, out_);  // Who looks for it may look there.
    flush();
    return refuse(*refusal_);
  }
  Greeting greeting;
  greeting.hello = hello;
  if (options_.token) {
    greeting.proof = greeting_proof(*options_.token, challenge_.nonce, nonce_, hello);
  }
  std::string bytes;
  encode(greeting, bytes);
  // What the server would close the connection for is the user's to know, at once.
  const auto frame = decode_client_frame(std::string_view(bytes).substr(kFrameHeaderBytes));
  if (!frame) return refuse({"this node can't join: " + frame.error().message, kUsage});
  out_ += bytes;
  flush();
}

void Line::Connection::refuse(Refusal refusal) {
  refusal_ = std::move(refusal);
  boost::asio::post(loop_, [self = shared_from_this()] {
    if (self->is_over_) return;
    self->deliver(*self->refusal_);
    if (self->is_over_) return;
    self->go_down({Errc::InvalidArgument, self->refusal_->message});
  });
}

void Line::Connection::flush() {
  if (is_writing_ || out_.empty()) return;
  const auto moved = posix::send_now(socket_.native_handle(), out_);
  if (moved.end == posix::Moved::End::Broken) {
    return go_down_soon({Errc::Unavailable, "send to the rendezvous server " + endpoint_ + ": " +
                                                posix::errno_text(moved.error)});
  }
  out_.erase(0, moved.bytes);
  if (!out_.empty()) watch_writable();
}

void Line::Connection::watch_writable() {
  is_writing_ = true;
  socket_.async_wait(boost::asio::posix::descriptor_base::wait_write,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       self->is_writing_ = false;
                       if (!error && !self->is_over_) self->flush();
                     });
}

void Line::Connection::read_on() {
  socket_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       if (!error && !self->is_over_) self->read();
                     });
}

void Line::Connection::read() {
  std::array<char, 16 * 1024> room;
  const auto moved = posix::receive_now(socket_.native_handle(), room);
  switch (moved.end) {
    case posix::Moved::End::WouldBlock:
      return read_on();
    case posix::Moved::End::Finished:
      return go_down(
          {Errc::Unavailable, "the rendezvous server " + endpoint_ + " closed the connection"});
    case posix::Moved::End::Broken:
      return go_down({Errc::Unavailable, "the connection to the rendezvous server " + endpoint_ +
                                             " broke: " + posix::errno_text(moved.error)});
    case posix::Moved::End::None:
      break;
  }
  in_.append(room.data(), moved.bytes);
  digest();
  if (!is_over_) read_on();
}

void Line::Connection::digest() {
  const auto self = shared_from_this();  // A handler may let the line go.
  std::size_t done = 0;
  while (!is_over_) {
    const auto body = first_frame(std::string_view(in_).substr(done), kMaxFrameBytes);
    if (!body) return go_down(speaks_nonsense(endpoint_, body.error()));
    if (!*body) break;
    done += kFrameHeaderBytes + (*body)->size();
    auto frame = decode_server_frame(**body);
    if (!frame) return go_down(speaks_nonsense(endpoint_, frame.error()));
    if (!*frame) continue;
    auto* const message = std::get_if<ServerMessage>(&**frame);
    if (message == nullptr || !has_greeted_) {
      return go_down(speaks_nonsense(endpoint_, {Errc::InvalidArgument, "a frame out of turn"}));
    }
    deliver(std::move(*message));
  }
  in_.erase(0, done);
}

void Line::Connection::deliver(ServerMessage message) {
  const auto handlers = handlers_;
  if (handlers->on_message) handlers->on_message(message);
}

void Line::Connection::go_down(Error error) {
  const auto handlers = handlers_;
  hang_up();
  if (handlers->on_down) handlers->on_down(error);
}

void Line::Connection::go_down_soon(Error error) {
  boost::asio::post(loop_, [self = shared_from_this(), error = std::move(error)] {
    if (!self->is_over_) self->go_down(error);
  });
}

void Line::Connection::hang_up() {
  if (std::exchange(is_over_, true)) return;
  handlers_.reset();
  dialler_.reset();
  if (!socket_.is_open()) return;
  // Closing with unread bytes resets the connection, and what was sent last might be lost.
  posix::finish_sending(socket_.native_handle());
  std::array<char, 4 * 1024> ignored;
  while (posix::receive_now(socket_.native_handle(), ignored).bytes > 0) {
  }
  socket_.close();
}

std::unique_ptr<Line> Line::dial(boost::asio::io_context& loop, LineOptions options,
                                 Handlers handlers, Logger& logger) {
  auto connection =
      std::make_shared<Connection>(loop, std::move(options), std::move(handlers), logger);
  connection->begin();
  return std::unique_ptr<Line>(new Line(std::move(connection)));
}

Line::Line(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

Line::~Line() { connection_->hang_up(); }

void Line::send(const AgentMessage& message) { connection_->send(message); }

}  // namespace muster::rendezvous

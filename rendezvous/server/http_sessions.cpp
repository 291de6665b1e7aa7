#include "rendezvous/server/http_sessions.hpp"

#include <chrono>
#include <optional>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

namespace muster::rendezvous {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

/// For a request to come in, or the next one to begin; and for a reply to be taken.
constexpr std::chrono::seconds kPatience{10};

}  // namespace

class HttpSessions::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(asio::io_context& loop, posix::Fd socket, bool is_v6, Answer answer,
          std::weak_ptr<Sessions> all)
      : stream_(asio::ip::tcp::socket(loop, is_v6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4(),
                                      socket.release())),
        buffer_(kMaxHeaderBytes),
        answer_(std::move(answer)),
        all_(std::move(all)) {}

  void read() {
    request_.emplace();
    request_->header_limit(kMaxHeaderBytes);
    stream_.expires_after(kPatience);
    http::async_read_header(stream_, buffer_, *request_,
                            [self = shared_from_this()](const beast::error_code& error,
                                                        std::size_t) { self->has_read(error); });
  }

  void close() {
    beast::error_code ignored;
    stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
    stream_.close();
    if (const auto all = all_.lock()) all->erase(shared_from_this());
  }

 private:
  void has_read(const beast::error_code& error) {
    if (!all_.lock()) return;
    if (error == http::error::header_limit || error == http::error::buffer_overflow) {
      return reply({.status = 431, .body = "the request is too long\n"}, false, false);
    }
    if (error == beast::error::timeout || error == http::error::end_of_stream) return close();
    if (error.category() == http::make_error_code(http::error::bad_method).category()) {
      return reply({.status = 400, .body = "this is no HTTP/1.1 request\n"}, false, false);
    }
    if (error) return close();
    const auto& request = request_->get();
    const bool has_body = request_->chunked() || request_->content_length().value_or(0) != 0;
    const bool is_head = request.method() == http::verb::head;
    if (!is_head && request.method() != http::verb::get) {
      return reply({.status = 405, .body = "only GET and HEAD are served here\n"}, false, false);
    }
    // A body is not read: what follows would be taken for a request.
    const bool keeps = request.keep_alive() && !has_body;
    reply(answer_(std::string(request.target())), keeps, is_head);
  }

  void reply(HttpReply from, bool keeps, bool is_head) {
    reply_.emplace();
    reply_->result(from.status);
    reply_->set(http::field::server, "muster");
    reply_->set(http::field::content_type, from.type);
    reply_->set(http::field::cache_control, "no-store");
    if (from.status == 405) reply_->set(http::field::allow, "GET, HEAD");
    reply_->keep_alive(keeps);
    reply_->content_length(from.body.size());
    if (!is_head) reply_->body() = std::move(from.body);
    stream_.expires_after(kPatience);
    http::async_write(
        stream_, *reply_,
        [self = shared_from_this(), keeps](const beast::error_code& error, std::size_t) {
          if (!error && keeps && self->all_.lock()) return self->read();
          self->close();
        });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::empty_body>> request_;
  std::optional<http::response<http::string_body>> reply_;
  Answer answer_;
  std::weak_ptr<Sessions> all_;
};

HttpSessions::HttpSessions(asio::io_context& loop, Answer answer)
    : loop_(loop), answer_(std::move(answer)) {}

HttpSessions::~HttpSessions() {
  const auto sessions = std::exchange(sessions_, nullptr);
  for (const auto& session : std::exchange(*sessions, {})) session->close();
}

bool HttpSessions::serve(posix::Fd socket, bool is_v6) {
  if (sessions_->size() >= kMaxSessions) return false;
  auto session = std::make_shared<Session>(loop_, std::move(socket), is_v6, answer_, sessions_);
  sessions_->insert(session);
  session->read();
  return true;
}

}  // namespace muster::rendezvous

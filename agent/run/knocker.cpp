#include "agent/run/knocker.hpp"

#include "rendezvous/store/knock.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

namespace muster::agent {
namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;

/// Kept alive by what Asio holds; says nothing after `stop`.
class Knocker::Attempts : public std::enable_shared_from_this<Attempts> {
 public:
  Attempts(asio::io_context& loop, Endpoint store, const std::string& secret,
           std::string own_address, Handlers handlers)
      : store_(std::move(store)),
        words_(store::knock(secret)),
        own_address_(std::move(own_address)),
        handlers_(std::move(handlers)),
        socket_(loop),
        patience_(loop),
        pause_(loop) {}

  void stop() {
    is_stopped_ = true;
    give_up();
    pause_.cancel();
  }

  void attempt() {
    ++attempt_;
    patience_.expires_after(kAttemptPatience);
    patience_.async_wait([self = shared_from_this()](const ErrorCode& error) {
      if (!error && !self->is_stopped_) self->fail("timed out");
    });
    ErrorCode no_number;  // Servers name masters by number: no name is looked up.
    const auto address = asio::ip::make_address(store_.host, no_number);
    if (no_number) {
      asio::post(socket_.get_executor(), [self = shared_from_this(), mine = attempt_] {
        if (self->is_current(mine)) self->fail("that is no numeric address");
      });
      return;
    }
    socket_.async_connect(tcp::endpoint(address, store_.port),
                          [self = shared_from_this(), mine = attempt_](const ErrorCode& error) {
                            if (!self->is_current(mine)) return;
                            if (error) {
                              self->fail(error.message());
                            } else {
                              self->speak();
                            }
                          });
  }

 private:
  void speak() {
    asio::async_write(
        socket_, asio::buffer(words_),
        [self = shared_from_this(), mine = attempt_](const ErrorCode& error, std::size_t) {
          if (!self->is_current(mine)) return;
          if (error) {
            self->fail(error.message());
          } else {
            self->listen();
          }
        });
  }

  void listen() {
    asio::async_read(
        socket_, asio::buffer(answer_),
        [self = shared_from_this(), mine = attempt_](const ErrorCode& error, std::size_t) {
          if (!self->is_current(mine)) return;
          const std::string_view answer(self->answer_.data(), self->answer_.size());
          if (error == asio::error::eof) {
            self->fail("it hung up without an answer");
          } else if (error) {
            self->fail(error.message());
          } else if (answer == store::knock_answer(true)) {
            self->stop();
            self->handlers_.on_heard();
          } else if (answer == store::knock_answer(false)) {
            self->fail("it is the store of another round");
          } else {
            self->fail("who answers there is no store of muster");
          }
        });
  }

  void fail(const std::string& cause) {
    give_up();
    pause_.expires_after(next_pause_);
    next_pause_ = std::min(next_pause_ * 2, kLongestPause);
    pause_.async_wait([self = shared_from_this()](const ErrorCode& error) {
      if (!error && !self->is_stopped_) self->attempt();
    });
    handlers_.on_failed("knock from " + (own_address_.empty() ? "this node" : own_address_) +
                        " at the store of the master " + to_string(store_) + ": " + cause);
  }

  void give_up() {
    ++attempt_;
    patience_.cancel();
    ErrorCode ignored;
    (void)socket_.close(ignored);
  }

  bool is_current(std::uint64_t attempt) const { return !is_stopped_ && attempt == attempt_; }

  Endpoint store_;
  std::string words_;
  std::string own_address_;
  Handlers handlers_;
  tcp::socket socket_;
  asio::steady_timer patience_;
  asio::steady_timer pause_;
  Duration next_pause_ = kFirstPause;
  std::uint64_t attempt_ = 0;
  bool is_stopped_ = false;
  std::array<char, store::kKnockAnswerBytes> answer_{};
};

Knocker::Knocker(asio::io_context& loop, Endpoint store, std::string secret,
                 std::string own_address, Handlers handlers)
    : attempts_(std::make_shared<Attempts>(loop, std::move(store), secret, std::move(own_address),
                                           std::move(handlers))) {
  attempts_->attempt();
}

Knocker::~Knocker() { attempts_->stop(); }

}  // namespace muster::agent

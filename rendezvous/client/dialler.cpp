#include "rendezvous/client/dialler.hpp"

#include "base/posix/dialling.hpp"
#include "base/posix/server_socket.hpp"
#include "rendezvous/client/handshake.hpp"
#include "rendezvous/client/lookup.hpp"
#include "rendezvous/client/secret.hpp"
#include "rendezvous/client/stranger.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

namespace muster::rendezvous {
namespace {

/// How long the next address of a name waits for the one before it.
constexpr std::chrono::milliseconds kStagger{250};

/// Of several failures the one that says most is told: a stranger that answers, before silence,
/// before nobody.
int telling(const Error& error) { return error.code == Errc::InvalidArgument ? 1 : 0; }

}  // namespace

/// One address: connects, sends the Open, reads the answer.
class Dialler::Attempt : public std::enable_shared_from_this<Attempt> {
 public:
  Attempt(boost::asio::io_context& loop, std::weak_ptr<Search> search, std::string endpoint,
          std::string nonce, Duration silence)
      : socket_(loop),
        silence_timer_(loop),
        search_(std::move(search)),
        endpoint_(std::move(endpoint)),
        nonce_(std::move(nonce)),
        silence_(silence) {}

  /// An error is returned, not reported.
  Result<void> begin(const posix::SocketAddress& to,
                     const std::optional<posix::SocketAddress>& from) {
    auto socket = posix::begin_connect(to, from);
    if (!socket) {
      return fail(socket.error().code, "connect to " + endpoint_ + ": " + socket.error().message);
    }
    socket_.assign(socket->release());
    socket_.async_wait(boost::asio::posix::descriptor_base::wait_write,
                       [self = shared_from_this()](const boost::system::error_code& error) {
                         if (!error && !self->is_over_) self->connected();
                       });
    return {};
  }

  void give_up() {
    is_over_ = true;
    silence_timer_.cancel();
    socket_.close();
  }

 private:
  void connected();
  void read_on();
  void read();
  void report(Result<Answer> answer);

  boost::asio::posix::stream_descriptor socket_;
  boost::asio::steady_timer silence_timer_;
  std::weak_ptr<Search> search_;
  std::string endpoint_;
  std::string nonce_;
  Duration silence_;
  std::string in_;
  bool is_over_ = false;
};

class Dialler::Search : public std::enable_shared_from_this<Search> {
 public:
  Search(boost::asio::io_context& loop, Options options, Handler answered)
      : loop_(loop),
        patience_timer_(loop),
        stagger_timer_(loop),
        options_(std::move(options)),
        handler_(std::move(answered)) {}

  void begin();
  void give_up();
  void settle(Attempt* attempt, Result<Answer> answer);

 private:
  void found(Result<std::vector<posix::SocketAddress>> addresses);
  void try_next();
  void failed(Error error);
  void report(Result<Answer> answer);

  boost::asio::io_context& loop_;
  boost::asio::steady_timer patience_timer_;
  boost::asio::steady_timer stagger_timer_;
  Options options_;
  Handler handler_;
  std::string nonce_;
  std::optional<posix::SocketAddress> from_;
  std::optional<Lookup> lookup_;
  std::vector<posix::SocketAddress> untried_;  // The next one last.
  std::vector<std::shared_ptr<Attempt>> attempts_;
  std::optional<Error> error_;
};

void Dialler::Search::begin() {
  auto nonce = random_secret();
  Result<posix::SocketAddress> from = posix::SocketAddress{};
  if (!options_.local_address.empty()) {
    from = posix::numeric_address({options_.local_address, 0});
    if (from) from_ = *from;
  }
  if (!nonce || !from) {
    auto error = nonce ? from.error() : nonce.error();
    boost::asio::post(loop_, [self = shared_from_this(), error = std::move(error)] {
      self->report(pass(error));
    });
    return;
  }
  nonce_ = *std::move(nonce);
  patience_timer_.expires_after(options_.patience);
  patience_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error) return;
    const bool is_named = !self->lookup_;
    self->report(pass(self->error_.value_or(
        Error{Errc::Timeout, (is_named ? "connect to " : "look up the host of ") +
                                 to_string(self->options_.server) + ": timed out"})));
  });
  lookup_.emplace(loop_, options_.server,
                  [search = weak_from_this()](Result<std::vector<posix::SocketAddress>> addresses) {
                    if (const auto self = search.lock()) self->found(std::move(addresses));
                  });
}

void Dialler::Search::give_up() {
  handler_ = nullptr;
  lookup_.reset();
  patience_timer_.cancel();
  stagger_timer_.cancel();
  for (const auto& attempt : attempts_) attempt->give_up();
  attempts_.clear();
}

void Dialler::Search::found(Result<std::vector<posix::SocketAddress>> addresses) {
  if (!addresses) return report(pass(std::move(addresses.error())));
  lookup_.reset();
  untried_ = *std::move(addresses);
  // With a local address of one family, an address of the other can't be reached.
  if (from_) {
    std::erase_if(untried_, [this](const auto& to) { return to.family() != from_->family(); });
  }
  std::ranges::reverse(untried_);
  if (untried_.empty()) {
    return report(fail(Errc::InvalidArgument, to_string(options_.server) +
                                                  " has no address that can be reached from " +
                                                  options_.local_address));
  }
  try_next();
}

void Dialler::Search::try_next() {
  stagger_timer_.cancel();
  if (untried_.empty()) return;
  const auto address = untried_.back();
  untried_.pop_back();
  const auto endpoint = to_string(posix::to_endpoint(address));
  auto attempt =
      std::make_shared<Attempt>(loop_, weak_from_this(), endpoint, nonce_, options_.silence);
  if (auto begun = attempt->begin(address, from_); !begun) {
    return failed(std::move(begun.error()));
  }
  attempts_.push_back(std::move(attempt));
  if (untried_.empty()) return;
  stagger_timer_.expires_after(kStagger);
  stagger_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && self->handler_) self->try_next();
  });
}

void Dialler::Search::settle(Attempt* attempt, Result<Answer> answer) {
  if (!handler_) return;
  std::erase_if(attempts_, [attempt](const auto& each) { return each.get() == attempt; });
  if (answer) {
    report(std::move(answer));
  } else {
    failed(std::move(answer.error()));
  }
}

void Dialler::Search::failed(Error error) {
  if (!error_ || telling(error) > telling(*error_)) error_ = std::move(error);
  if (!untried_.empty()) {
    try_next();
  } else if (attempts_.empty()) {
    report(pass(*error_));
  }
}

void Dialler::Search::report(Result<Answer> answer) {
  auto handler = std::exchange(handler_, nullptr);
  give_up();
  if (handler) handler(std::move(answer));
}

void Dialler::Attempt::connected() {
  const int error = posix::connect_error(socket_.native_handle());
  if (error != 0) {
    return report(
        fail(Errc::Unavailable, "connect to " + endpoint_ + ": " + posix::errno_text(error)));
  }
  const auto hello = opening(nonce_);  // Fits into the empty buffer of a new connection.
  const auto sent = posix::send_now(socket_.native_handle(), hello);
  if (sent.bytes != hello.size()) return report(pass(hung_up(endpoint_)));
  silence_timer_.expires_after(silence_);
  silence_timer_.async_wait(
      [self = shared_from_this()](const boost::system::error_code& cancelled) {
        if (cancelled || self->is_over_) return;
        self->report(pass(self->in_.empty() ? said_nothing(self->endpoint_)
                                            : not_a_server(self->endpoint_, self->in_)));
      });
  read_on();
}

void Dialler::Attempt::read_on() {
  socket_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       if (!error && !self->is_over_) self->read();
                     });
}

void Dialler::Attempt::read() {
  std::array<char, 4 * 1024> room;
  const auto moved = posix::receive_now(socket_.native_handle(), room);
  switch (moved.end) {
    case posix::Moved::End::WouldBlock:
      return read_on();
    case posix::Moved::End::Finished:
    case posix::Moved::End::Broken:
      return report(pass(in_.empty() ? hung_up(endpoint_) : not_a_server(endpoint_, in_)));
    case posix::Moved::End::None:
      break;
  }
  in_.append(room.data(), moved.bytes);
  std::size_t taken = 0;
  auto said = read_answer(endpoint_, in_, taken);
  if (!said) return report(pass(std::move(said.error())));
  if (!*said) return read_on();
  Answer answer;
  answer.said = **std::move(said);
  answer.nonce = nonce_;
  answer.rest = in_.substr(taken);
  answer.socket.reset(socket_.release());
  report(std::move(answer));
}

void Dialler::Attempt::report(Result<Answer> answer) {
  give_up();
  if (const auto search = search_.lock()) search->settle(this, std::move(answer));
}

Dialler::Dialler(boost::asio::io_context& loop, Options options, Handler answered)
    : search_(std::make_shared<Search>(loop, std::move(options), std::move(answered))) {
  search_->begin();
}

Dialler::~Dialler() { search_->give_up(); }

}  // namespace muster::rendezvous

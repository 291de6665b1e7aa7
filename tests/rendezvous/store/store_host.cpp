#include "tests/rendezvous/store/store_host.hpp"

#include "base/posix/socket.hpp"
#include "tests/rendezvous/log_lines.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>

namespace posix = muster::posix;
using Clock = std::chrono::steady_clock;

StoreHost::StoreHost(const muster::store::ServerOptions& options)
    : work_(boost::asio::make_work_guard(context_)),
      log_(std::make_shared<LogLines>()),
      logger_(std::make_unique<muster::Logger>("store", log_)) {
  auto bound = posix::bind_tcp({"127.0.0.1", 0});
  REQUIRE(bound);
  auto server =
      muster::store::Server::start(context_.get_executor(), *std::move(bound), options, *logger_);
  REQUIRE(server);
  server_ = *std::move(server);
  endpoint_ = server_->endpoint();
  thread_ = std::thread([this] { context_.run(); });
}

StoreHost::~StoreHost() {  // NOLINT(bugprone-exception-escape): without memory only.
  boost::asio::post(context_, [this] {
    server_.reset();
    work_.reset();
  });
  thread_.join();
}

muster::store::Stats StoreHost::stats() {
  return on_loop([this] { return server_->stats(); });
}

std::vector<muster::store::Waiter> StoreHost::waiters() {
  return on_loop([this] { return server_->waiters(); });
}

std::string StoreHost::log() { return log_->take(); }

std::string StoreHost::log_with(std::string_view text) { return log_->take_with(text, kPatience); }

RawClient::RawClient(const Options& options)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  REQUIRE(socket_);
  const auto set = [this](int level, int option, int value) {
    REQUIRE(::setsockopt(socket_.get(), level, option, &value, sizeof value) == 0);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  if (options.receive_buffer != 0) set(SOL_SOCKET, SO_RCVBUF, options.receive_buffer);
  const auto own = posix::numeric_address({std::string(options.from), 0});
  REQUIRE(own);
  REQUIRE(::bind(socket_.get(), own->raw(), own->size) == 0);
}

void RawClient::connect(std::uint16_t port) {
  const auto server = posix::numeric_address({"127.0.0.1", port});
  REQUIRE(server);
  REQUIRE(::connect(socket_.get(), server->raw(), server->size) == 0);
}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void RawClient::finish_sending() { ::shutdown(socket_.get(), SHUT_WR); }

void RawClient::reset() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  socket_.reset();
}

std::string RawClient::receive(std::size_t size) {
  std::string got;
  const auto deadline = Clock::now() + kPatience;
  while (got.size() < size) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd readable{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&readable, 1, static_cast<int>(left.count())) <= 0) break;
    std::string piece(size - got.size(), '\0');
    const auto count = ::recv(socket_.get(), piece.data(), piece.size(), 0);
    if (count <= 0) break;
    got.append(piece, 0, static_cast<std::size_t>(count));
  }
  return got;
}

bool RawClient::is_closed_by_peer() {
  pollfd readable{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&readable, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count())) <= 0) {
    return false;
  }
  char byte = 0;
  return ::recv(socket_.get(), &byte, 1, 0) <= 0;
}

bool RawClient::is_quiet() const {
  char byte = 0;
  return ::recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

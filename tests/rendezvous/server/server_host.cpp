#include "tests/rendezvous/server/server_host.hpp"

#include "tests/rendezvous/log_lines.hpp"

#include <chrono>
#include <sys/socket.h>

#include <catch2/catch.hpp>

using namespace muster;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::chrono::seconds kHostPatience{20};

}  // namespace

ServerHost::ServerHost(Options options)
    : work_(boost::asio::make_work_guard(loop_)),
      log_(std::make_shared<LogLines>()),
      logger_(std::make_unique<Logger>("server", log_)) {
  auto listener = rendezvous::Server::listen({"127.0.0.1", 0});
  REQUIRE(listener);
  if (options.send_buffer != 0) {  // What is accepted inherits it.
    REQUIRE(::setsockopt(listener->get(), SOL_SOCKET, SO_SNDBUF, &options.send_buffer,
                         sizeof options.send_buffer) == 0);
  }
  rendezvous::Server::Options settings;
  settings.listeners.push_back(*std::move(listener));
  settings.core = options.core;
  settings.core.bound_at = Clock::now();
  settings.token = options.token;
  settings.store = options.store;
  settings.serves_store = options.serves_store;
  settings.connections = options.connections;
  auto server = rendezvous::Server::start(loop_, std::move(settings), *logger_);
  REQUIRE(server);
  server_ = *std::move(server);
  if (options.prepare) options.prepare(*server_);
  endpoint_ = server_->endpoint();
  thread_ = std::thread([this] { loop_.run(); });
}

ServerHost::~ServerHost() {  // NOLINT(bugprone-exception-escape): without memory only.
  boost::asio::post(loop_, [this] {
    server_.reset();
    work_.reset();
  });
  thread_.join();
}

std::string ServerHost::log_with(std::string_view text) {
  return log_->take_with(text, kHostPatience);
}

bool ServerHost::until(const std::function<bool(const rendezvous::Server::Stats&)>& is_so) {
  const auto deadline = Clock::now() + kHostPatience;
  while (Clock::now() < deadline) {
    if (is_so(stats())) return true;
    std::this_thread::yield();
  }
  return false;
}

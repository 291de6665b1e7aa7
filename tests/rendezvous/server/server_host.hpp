#pragma once

#include "base/posix/socket.hpp"
#include "rendezvous/server/server.hpp"

#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

/// What was logged, for tests that look for a line.
class LogLines;

/// A rendezvous server on a thread of its own, with a real core, as a process would host it.
class ServerHost {
 public:
  struct Options {
    std::optional<std::string> token{};
    bool serves_store = true;
    std::size_t connections = 1000;
    int send_buffer = 0;  ///< Of each connection; 0: the system's.
    std::function<void(muster::rendezvous::Server&)> prepare{};
    muster::rendezvous::Rendezvous::Settings core{.first_here = true};
    muster::store::ServerOptions store{};
  };
  ServerHost() : ServerHost(Options{}) {}
  explicit ServerHost(Options options);
  ~ServerHost();
  ServerHost(const ServerHost&) = delete;
  ServerHost& operator=(const ServerHost&) = delete;

  [[nodiscard]] std::uint16_t port() const { return endpoint_.port; }
  [[nodiscard]] muster::Endpoint endpoint() const { return endpoint_; }
  [[nodiscard]] std::string log_with(std::string_view text);

  [[nodiscard]] boost::asio::io_context& loop() { return loop_; }

  /// Runs on the loop's thread.
  template <class Act>
  auto on_loop(Act act) {
    std::packaged_task<decltype(act(std::declval<muster::rendezvous::Server&>()))()> task(
        [this, act = std::move(act)] { return act(*server_); });
    auto result = task.get_future();
    boost::asio::post(loop_, std::move(task));
    return result.get();
  }
  [[nodiscard]] muster::rendezvous::Server::Stats stats() {
    return on_loop([](auto& server) { return server.stats(); });
  }
  /// Until the server's figures are such; false: the patience was over first.
  bool until(const std::function<bool(const muster::rendezvous::Server::Stats&)>& is_so);

 private:
  boost::asio::io_context loop_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::shared_ptr<LogLines> log_;
  std::unique_ptr<muster::Logger> logger_;
  std::unique_ptr<muster::rendezvous::Server> server_;
  muster::Endpoint endpoint_;
  std::thread thread_;
};

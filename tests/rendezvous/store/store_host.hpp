#pragma once

#include "base/posix/fd.hpp"
#include "rendezvous/store/server.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

/// Every wait of these tests ends here at the latest: far beyond what a busy machine needs.
constexpr std::chrono::seconds kPatience{20};

class LogLines;

/// A store server on a thread of its own, as a process would host it.
class StoreHost {
 public:
  explicit StoreHost(const muster::store::ServerOptions& options = {});
  ~StoreHost();
  StoreHost(const StoreHost&) = delete;
  StoreHost& operator=(const StoreHost&) = delete;

  [[nodiscard]] std::uint16_t port() const { return endpoint_.port; }
  [[nodiscard]] muster::store::Stats stats();
  [[nodiscard]] std::vector<muster::store::Waiter> waiters();

  /// What was logged, one line each, since the last call.
  [[nodiscard]] std::string log();
  /// Until a line is logged that contains `text`; the whole log since the last call.
  [[nodiscard]] std::string log_with(std::string_view text);

  /// Runs on the loop's thread.
  template <class Act>
  auto on_loop(Act act) {
    std::packaged_task<decltype(act())()> task(std::move(act));
    auto result = task.get_future();
    boost::asio::post(context_, std::move(task));
    return result.get();
  }

 private:
  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::shared_ptr<LogLines> log_;
  std::unique_ptr<muster::Logger> logger_;
  std::unique_ptr<muster::store::Server> server_;
  muster::Endpoint endpoint_;
  std::thread thread_;
};

/// A client that sends and expects bytes.
class RawClient {
 public:
  struct Options {
    int receive_buffer = 0;  ///< 0: the system's.
    std::string_view from = "127.0.0.1";
  };
  explicit RawClient(const Options& options);  ///< Not connected yet.
  explicit RawClient(std::uint16_t port) : RawClient(port, Options{}) {}
  RawClient(std::uint16_t port, const Options& options) : RawClient(options) { connect(port); }

  void connect(std::uint16_t port);

  /// False if the connection is lost.
  bool send(std::string_view bytes);
  void finish_sending();
  /// Closes so that the peer sees a reset.
  void reset();

  /// Exactly so many bytes, or fewer if the connection ends or the patience does.
  [[nodiscard]] std::string receive(std::size_t size);
  /// Whether the peer closes, and sends nothing before.
  [[nodiscard]] bool is_closed_by_peer();
  /// Whether nothing has come and the connection is open.
  [[nodiscard]] bool is_quiet() const;
  [[nodiscard]] int descriptor() const { return socket_.get(); }

 private:
  muster::posix::Fd socket_;
};

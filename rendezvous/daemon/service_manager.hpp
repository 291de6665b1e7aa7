#pragma once

#include "base/ids.hpp"
#include "base/log/log.hpp"
#include "base/posix/notify_socket.hpp"
#include "rendezvous/daemon/options.hpp"

#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace muster::rendezvous {

/// Tells systemd, or whatever started us, how we are. Where nobody asked (no NOTIFY_SOCKET) it does
/// nothing. Loop thread only.
///
/// The watchdog is fed from the loop, at half of the time that it allows: a loop that is stuck
/// feeds it no more, and the service is restarted.
class ServiceManager {
 public:
  /// By NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID. `logger` outlives it.
  [[nodiscard]] static Result<std::unique_ptr<ServiceManager>> find(boost::asio::io_context& loop,
                                                                    const Environment& environment,
                                                                    int own_pid, Logger& logger);
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  /// The service is ready; from now on the watchdog is fed.
  void ready(const std::string& status);
  /// It is shutting down.
  void stopping();

 private:
  ServiceManager(boost::asio::io_context& loop, Logger& logger) : logger_(logger), beat_(loop) {}
  void tell(const std::string& state);
  void feed();

  Logger& logger_;
  std::optional<posix::NotifySocket> socket_;
  std::optional<Duration> interval_;  // Of feeding; nullopt: no watchdog.
  boost::asio::steady_timer beat_;
  bool complained_ = false;
};

}  // namespace muster::rendezvous

#include "rendezvous/daemon/service_manager.hpp"

#include <charconv>
#include <cstdint>
#include <string_view>

namespace muster::rendezvous {
namespace {

std::string value_of(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// The time that the watchdog allows; nullopt: there is none, or it is another process's.
Result<std::optional<Duration>> watchdog_time(const Environment& environment, int own_pid) {
  constexpr std::uint64_t kLongest = std::uint64_t{24} * 3600 * 1'000'000;
  const auto text = value_of(environment, "WATCHDOG_USEC");
  if (text.empty()) return std::nullopt;
  const auto owner = value_of(environment, "WATCHDOG_PID");
  if (!owner.empty() && owner != std::to_string(own_pid)) return std::nullopt;
  const auto microseconds = parse_number(text);
  if (!microseconds || *microseconds == 0 || *microseconds > kLongest) {
    return fail(Errc::InvalidArgument,
                "WATCHDOG_USEC: '" + text + "' is no number of microseconds up to a day");
  }
  return std::chrono::microseconds(*microseconds);
}

}  // namespace

Result<std::unique_ptr<ServiceManager>> ServiceManager::find(boost::asio::io_context& loop,
                                                             const Environment& environment,
                                                             int own_pid, Logger& logger) {
  std::unique_ptr<ServiceManager> manager(new ServiceManager(loop, logger));
  const auto address = value_of(environment, "NOTIFY_SOCKET");
  if (address.empty()) return manager;
  auto socket = posix::NotifySocket::open(address);
  if (!socket) return fail(socket.error().code, "NOTIFY_SOCKET: " + socket.error().message);
  manager->socket_ = std::move(*socket);
  const auto time = watchdog_time(environment, own_pid);
  if (!time) return pass(time.error());
  if (*time) manager->interval_ = **time / 2;
  return manager;
}

void ServiceManager::ready(const std::string& status) {
  tell("READY=1\nSTATUS=" + status);
  if (interval_) feed();
}

void ServiceManager::stopping() {
  beat_.cancel();
  interval_.reset();
  tell("STOPPING=1\nSTATUS=shutting down");
}

void ServiceManager::feed() {
  tell("WATCHDOG=1");
  beat_.expires_after(*interval_);
  beat_.async_wait([this](const boost::system::error_code& error) {
    if (!error && interval_) feed();
  });
}

void ServiceManager::tell(const std::string& state) {
  if (!socket_) return;
  const auto told = socket_->send(state);
  if (!told && !complained_) logger_.warn("{}", told.error().message);
  complained_ = !told;
}

}  // namespace muster::rendezvous

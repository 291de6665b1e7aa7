#pragma once

#include "base/error.hpp"
#include "base/posix/fd.hpp"
#include "base/posix/socket.hpp"

#include <string>
#include <string_view>

namespace muster::posix {

/// Where a service manager wants to hear how its service is (sd_notify's protocol): a datagram
/// socket of the Unix kind, a path or, with an `@` first, an abstract name.
class NotifySocket {
 public:
  /// Nothing is sent yet. An address that can be none is InvalidArgument.
  [[nodiscard]] static Result<NotifySocket> open(const std::string& address);

  /// Lines of `NAME=value`. Never blocks.
  [[nodiscard]] Result<void> send(std::string_view state) const;

 private:
  NotifySocket(Fd socket, SocketAddress address, std::string name)
      : socket_(std::move(socket)), address_(address), name_(std::move(name)) {}
  Fd socket_;
  SocketAddress address_;
  std::string name_;
};

}  // namespace muster::posix

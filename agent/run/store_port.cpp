#include "agent/run/store_port.hpp"

#include "base/posix/server_socket.hpp"
#include "base/posix/socket.hpp"

#include <utility>

namespace muster::agent {
namespace {

Result<posix::Fd> try_port(const Endpoint& at, bool is_agents) {
  const auto hold = is_agents ? posix::Hold::Listening : posix::Hold::Bound;
  auto taken = posix::take_port(at, hold);
  if (taken || at.host != "::" || taken.error().code == Errc::InvalidArgument) return taken;
  // All addresses of a machine whose kernel has no IPv6 are the IPv4 ones.
  return posix::take_port({"0.0.0.0", at.port}, hold);
}

}  // namespace

StorePort::StorePort(Settings settings, posix::Fd first)
    : settings_(std::move(settings)), reserved_(std::move(first)) {}

Result<posix::Fd> StorePort::reserve_at(const Endpoint& at, bool is_agents) {
  auto taken = try_port(at, is_agents);
  if (!taken) return pass(posix::naming_holder(taken.error(), at.port));
  return taken;
}

Result<Endpoint> StorePort::reserve() {
  if (!reserved_) {
    auto taken = settings_.range && settings_.at.port == 0
                     ? reserve_in_range()
                     : reserve_at(settings_.at, settings_.is_agents);
    if (!taken) return pass(taken.error());
    reserved_ = std::move(*taken);
  }
  return posix::to_endpoint(posix::local_address(reserved_.get()));
}

Result<posix::Fd> StorePort::reserve_in_range() {
  const auto [first, last] = *settings_.range;
  const std::uint32_t count = std::uint32_t{last} - first + 1;
  std::optional<Error> trouble;
  std::uint16_t port = first;
  for (std::uint32_t tried = 0; tried < count; ++tried) {
    // On from where the last round's was: a worker that is slow to die may still hold on to that.
    const std::uint32_t offset = next_offset_++ % count;
    port = static_cast<std::uint16_t>(std::uint32_t{first} + offset);
    auto taken = try_port({settings_.at.host, port}, settings_.is_agents);
    if (taken) return taken;
    trouble = taken.error();
  }
  trouble = posix::naming_holder(std::move(*trouble), port);
  return fail(trouble->code, "no port of --port-range " + std::to_string(first) + "-" +
                                 std::to_string(last) +
                                 " can be had for the worker store; the last: " + trouble->message);
}

posix::Fd StorePort::take() {
  // Workers of an earlier round, or strangers. Those of the next one start after this.
  while (settings_.is_agents && posix::accept_now(reserved_.get()).socket) {
  }
  return std::move(reserved_);
}

}  // namespace muster::agent

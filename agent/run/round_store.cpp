#include "agent/run/round_store.hpp"

#include "base/posix/interfaces.hpp"

#include <utility>

namespace muster::agent {

RoundStore::RoundStore(boost::asio::io_context& loop, Settings settings, posix::Fd first_port,
                       Logger& logger)
    : loop_(loop),
      settings_(std::move(settings)),
      logger_(logger),
      port_(settings_.port, std::move(first_port)) {}

Result<Endpoint> RoundStore::reserve_next(bool others_meet) {
  if (!others_meet) close();
  port_.release();
  auto next = port_.reserve();
  if (!next && server_) {  // Perhaps for want of a second port.
    close();
    next = port_.reserve();
  }
  return next;
}

Result<void> RoundStore::host(const Assignment& assignment) {
  auto options = settings_.options;
  options.door = door_for(assignment);
  auto server =
      store::Server::start(loop_.get_executor(), port_.take(), std::move(options), logger_);
  if (!server) return pass(server.error());
  server_ = std::move(*server);
  server_->on_turned_away([this, round = assignment.round](const std::string& address) {
    settings_.on_turned_away(round, address);
  });
  return {};
}

/// Who may come to the store of a round (protocol.md 7).
store::Door RoundStore::door_for(const Assignment& assignment) const {
  auto door = settings_.options.door;
  door.is_open = settings_.is_open;
  door.allowed = settings_.allow;
  door.secret = assignment.secret;
  auto admitted = assignment.admitted;
  if (!door.is_open) {
    auto own = posix::local_addresses();
    if (own) admitted.insert(admitted.end(), own->begin(), own->end());
  }
  for (const auto& text : admitted) {
    if (const auto address = store::parse_address(text)) door.admitted.insert(*address);
  }
  return door;
}

}  // namespace muster::agent

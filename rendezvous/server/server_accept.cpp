#include "base/posix/dialling.hpp"
#include "rendezvous/server/server_loop.hpp"
#include "rendezvous/store/buffer.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace muster::rendezvous {
namespace {

/// Accepted in one go; those beyond come next turn, so that open connections are served too.
constexpr int kAcceptsPerTurn = 256;

/// Out of descriptors or memory: how long until the next attempt, if no connection of ours closes.
constexpr std::chrono::milliseconds kAcceptPause{250};

/// From one address, of those that have not said who they are: half of all. Ten thousand agents may
/// be behind one router.
std::size_t most_strangers(std::size_t connections) { return connections / 2 + 1; }

/// From the first byte to the Hello, and before it.
constexpr std::chrono::seconds kHandshakePatience{10};
/// To take the last that it is sent.
constexpr std::chrono::seconds kFarewellPatience{5};

}  // namespace

void Server::Loop::accept_some(int listener) {
  for (int count = 0; count < kAcceptsPerTurn; ++count) {
    auto accepted = posix::accept_now(listener);
    if (accepted.error == 0) {
      admit(std::move(accepted.socket), store::to_peer(accepted.peer));
    } else if (accepted.error == EAGAIN || accepted.error == EWOULDBLOCK) {
      if (is_exhausted_) logger_.info("rendezvous server accepts connections again");
      is_exhausted_ = false;
      return;
    } else if (!posix::concerns_one_connection(accepted.error)) {
      pause_accepting(accepted.error);
      return;
    }
  }
}

std::size_t Server::Loop::taken() const {
  return links_.size() + http_->size() + 2 * grpc_.size() +
         (store_ ? store_->stats().connections : 0);
}

void Server::Loop::admit(posix::Fd socket, const store::Peer& peer) {
  const auto now = std::chrono::steady_clock::now();
  if (taken() >= options_.connections) {
    refusals_.refused(
        now, to_endpoint(peer),
        "the limit of all connections is reached: " + std::to_string(options_.connections));
    return;
  }
  const auto most = most_strangers(options_.connections);
  if (links_.strangers_from(peer) >= most) {
    refusals_.refused(
        now, to_endpoint(peer),
        "the limit of connections from one address is reached: " + std::to_string(most));
    return;
  }
  Link& link = links_.open(std::move(socket), peer);
  link.interest = EPOLLIN;
  if (auto added = set_.add(link.socket.get(), EPOLLIN, link.id.value); !added) {
    return refuse(link, added.error().message);
  }
  handshakes_.emplace_back(now + kHandshakePatience, link.id);
  if (handshakes_.size() == 1) arm_overdue_timer();
}

/// The connections stay in the kernel's queue: none is lost.
void Server::Loop::pause_accepting(int error) {
  if (!is_exhausted_) {
    logger_.warn(
        "rendezvous server can't accept connections for now reason=\"{}\" open={}; they wait until "
        "one closes, or the open-file limit (ulimit -n) must be raised",
        posix::errno_text(error), links_.size());
  }
  is_exhausted_ = true;
  is_accepting_ = false;
  auto name = kFirstListener;
  for (const auto& listener : options_.listeners) {
    static_cast<void>(set_.change(listener.get(), 0, name--));
  }
  accept_timer_.expires_after(kAcceptPause);
  accept_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& failed) {
    if (!failed && !self->is_stopped_) self->resume_accepting();
  });
}

void Server::Loop::resume_accepting() {
  if (is_accepting_) return;
  is_accepting_ = true;
  auto name = kFirstListener;
  for (const auto& listener : options_.listeners) {
    static_cast<void>(set_.change(listener.get(), EPOLLIN, name--));
  }
}

posix::Fd Server::Loop::release(Link& link) {
  buffered_ -= link.accounted;
  return links_.take(link.id);
}

void Server::Loop::close(Link& link) {
  const auto id = link.id;
  const bool is_known = link.is_known;
  if (is_known && link.stage == Link::Stage::Attending) --attendances_;
  release(link).reset();
  resume_accepting();
  if (is_known) feed(Rendezvous::Lost{id});
}

void Server::Loop::refuse(Link& link, std::string_view reason) {
  refusals_.refused(std::chrono::steady_clock::now(), to_endpoint(link.peer), reason);
  close(link);
}

void Server::Loop::see_off(Link& link) {
  if (link.stage == Link::Stage::Closing) return;
  link.stage = Link::Stage::Closing;
  std::string().swap(link.in);
  buffered_ -= std::exchange(link.accounted, 0);
  link.nonces.reset();
  farewells_.emplace_back(std::chrono::steady_clock::now() + kFarewellPatience, link.id);
  if (farewells_.size() == 1) arm_overdue_timer();
  mark_dirty(link);  // Flushing ends it, when nothing is due any more.
}

void Server::Loop::arm_overdue_timer() {
  if (handshakes_.empty() && farewells_.empty()) return;
  TimePoint next = TimePoint::max();
  for (const auto* const each : {&handshakes_, &farewells_}) {
    if (!each->empty()) next = std::min(next, each->front().first);
  }
  overdue_timer_.expires_at(next);
  overdue_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || self->is_stopped_) return;
    self->end_overdue();
    self->finish_turn();
  });
}

void Server::Loop::end_overdue() {
  const auto now = std::chrono::steady_clock::now();
  const auto next_due = [now](auto& queue) -> std::optional<LinkId> {
    if (queue.empty() || queue.front().first > now) return std::nullopt;
    const auto id = queue.front().second;
    queue.pop_front();
    return id;
  };
  while (const auto id = next_due(farewells_)) {
    if (Link* const link = links_.find(*id)) close(*link);
  }
  while (const auto id = next_due(handshakes_)) {
    Link* const link = links_.find(*id);
    if (link == nullptr) continue;
    switch (link->stage) {
      case Link::Stage::Unknown:
        // The oldest clients of c10d have a second connection on which they never send.
        if (store_) {
          hand_to_store(*link);
        } else {
          refuse(*link, "it has said nothing in 10 s");
        }
        break;
      case Link::Stage::Preface:
      case Link::Stage::Opening:
      case Link::Stage::Challenged:
        refuse(*link, "it has not said who it is in 10 s");
        break;
      case Link::Stage::Attending:
      case Link::Stage::Parting:
      case Link::Stage::Closing:
        break;
    }
  }
  arm_overdue_timer();
}

Result<std::unique_ptr<store::Server>> Server::Loop::make_store(store::Door door) {
  store::ServerOptions options = options_.store;
  options.limits.connections =
      std::min(options.limits.connections, std::max<std::size_t>(options_.connections / 3, 1));
  options.door = std::move(door);
  auto store = store::Server::start(loop_.get_executor(), std::move(options), logger_);
  if (store) {
    (*store)->on_turned_away([this](const std::string& address) {
      if (store_job_) feed(Rendezvous::TurnedAway{*store_job_, address});
    });
  }
  return store;
}

}  // namespace muster::rendezvous

#include "rendezvous/server/server_loop.hpp"

#include <chrono>

namespace muster::rendezvous {
namespace {

/// For the store's connections; agents prove by pings that they are there.
constexpr posix::Keepalive kKeepalive{
    .idle = std::chrono::seconds(60), .interval = std::chrono::seconds(10), .probes = 6};

/// Full batches served before the process's loop gets its turn.
constexpr int kBatchesPerTurn = 4;

}  // namespace

Result<posix::Fd> Server::listen(const Endpoint& endpoint) {
  auto listener = posix::take_port(endpoint, posix::Hold::Listening);
  if (listener) posix::tune_for_requests(listener->get(), kKeepalive);  // As what it accepts.
  return listener;
}

Result<std::shared_ptr<Server::Loop>> Server::Loop::start(boost::asio::io_context& loop,
                                                          Options options, Logger& logger) {
  if (options.listeners.empty()) {
    return fail(Errc::InvalidArgument, "start a rendezvous server: it was given no socket");
  }
  auto set = posix::EpollSet::make();
  if (!set) return pass(std::move(set.error()));
  auto watched = posix::duplicate(set->descriptor());
  if (!watched) return pass(std::move(watched.error()));
  auto name = kFirstListener;
  for (const auto& listener : options.listeners) {
    if (auto added = set->add(listener.get(), EPOLLIN, name--); !added) {
      return pass(std::move(added.error()));
    }
  }
  auto started = std::make_shared<Loop>(loop, std::move(options), *std::move(set),
                                        *std::move(watched), logger);
  if (started->options_.serves_store) {
    auto door = started->options_.store.door;
    door.is_open = true;
    auto store = started->make_store(std::move(door));
    if (!store) return pass(std::move(store.error()));
    started->store_ = *std::move(store);
  }
  started->watch();
  started->arm_core_timer();
  return started;
}

Server::Loop::Loop(boost::asio::io_context& loop, Options options, posix::EpollSet set,
                   posix::Fd watched, Logger& logger)
    : loop_(loop),
      options_(std::move(options)),
      set_(std::move(set)),
      watched_(loop, watched.release()),
      accept_timer_(loop),
      overdue_timer_(loop),
      core_timer_(loop),
      logger_(logger),
      refusals_(logger, "rendezvous server"),
      endpoint_(posix::to_endpoint(posix::local_address(options_.listeners.front().get()))),
      core_(options_.core),
      http_(std::make_unique<HttpSessions>(
          loop, [this](const std::string& target) { return answer_http(target); })) {}

void Server::Loop::stop() {
  if (std::exchange(is_stopped_, true)) return;
  accept_timer_.cancel();
  overdue_timer_.cancel();
  core_timer_.cancel();
  events_.clear();
  for (auto& [id, done] : std::exchange(commands_, {})) {
    done(fail(Errc::Cancelled, "the server is stopping"));
  }
  links_.for_each([this](Link& link) {
    // Closing with unread bytes resets the connection, and what was sent last might be lost.
    posix::finish_sending(link.socket.get());
    std::array<char, 4 * 1024> room;  // What is being digested may still be in received_.
    while (posix::receive_now(link.socket.get(), room).bytes == room.size()) {
    }
    link.socket.reset();
  });
  grpc_.clear();
  store_.reset();
  http_.reset();
  // Last, when nothing is answered any more: whoever binds the port next counts on that.
  watched_.close();
  options_.listeners.clear();
}

std::vector<JobView> Server::Loop::jobs() const {
  return core_.jobs(std::chrono::steady_clock::now());
}

std::optional<JobView> Server::Loop::job(const std::string& id) const {
  return core_.job(std::chrono::steady_clock::now(), id);
}

std::optional<Archive::Ended> Server::Loop::ended(const std::string& id) const {
  const auto* const found = core_.ended(id);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

Server::Stats Server::Loop::stats() const {
  return {.attendances = attendances_,
          .connections = links_.size() + grpc_.size() + (http_ ? http_->size() : 0),
          .refused = refusals_.count(),
          .store = store_ ? store_->stats() : store::Stats{}};
}

void Server::Loop::watch() {
  watched_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                      [self = shared_from_this()](const boost::system::error_code& error) {
                        if (error || self->is_stopped_) return;
                        self->turn();
                        if (!self->is_stopped_) self->watch();
                      });
}

bool Server::Loop::is_listener(std::uint64_t name) const {
  return name > kFirstListener - options_.listeners.size();
}

void Server::Loop::turn() {
  for (int batches = 0; batches < kBatchesPerTurn; ++batches) {
    const auto ready = set_.ready();
    for (const auto& event : ready) {
      if (is_listener(event.data.u64)) {
        const auto index = static_cast<std::size_t>(kFirstListener - event.data.u64);
        accept_some(options_.listeners[index].get());
      } else if (Link* const link = links_.find(LinkId{event.data.u64})) {
        serve(*link, event.events);
      } else if (grpc_.erase(event.data.u64) != 0) {  // Only its end is an event.
        resume_accepting();
      }
      if (is_stopped_) return;
    }
    finish_turn();
    if (is_stopped_ || ready.size() < posix::EpollSet::kBatch) return;
  }
}

void Server::Loop::serve(Link& link, std::uint32_t events) {
  const bool is_lost = (events & (EPOLLERR | EPOLLHUP)) != 0;
  if (!link.out.empty() && (is_lost || (events & EPOLLOUT) != 0)) {
    const auto id = link.id;
    flush(link);
    if (links_.find(id) == nullptr) return;
  }
  if (is_lost || (events & EPOLLIN) != 0) receive(link);
}

/// Whatever a turn made the core say goes out, and what it decided is told.
void Server::Loop::finish_turn() {
  // Sending may lose a link, of which the core makes more to send.
  while (!dirty_.empty() && !is_stopped_) {
    for (const LinkId id : std::exchange(dirty_, {})) {
      Link* const link = links_.find(id);
      if (link == nullptr || is_stopped_) continue;
      link->is_dirty = false;
      flush(*link);
    }
    pump();
  }
  arm_core_timer();
  tell_ended();
}

}  // namespace muster::rendezvous

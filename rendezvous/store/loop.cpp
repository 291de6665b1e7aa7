#include "rendezvous/store/loop.hpp"

#include <chrono>

namespace muster::store {
namespace {

/// How soon a peer is found dead that vanished without a word: two minutes.
constexpr posix::Keepalive kKeepalive{
    .idle = std::chrono::seconds(60), .interval = std::chrono::seconds(10), .probes = 6};

/// Full batches served before the process's loop gets its turn.
constexpr int kBatchesPerTurn = 4;

}  // namespace

Result<std::shared_ptr<Server::Loop>> Server::Loop::start(
    const boost::asio::any_io_executor& executor, posix::Fd listener, ServerOptions options,
    Logger& logger) {
  auto set = posix::EpollSet::make();
  if (!set) return pass(std::move(set.error()));
  if (listener) {
    posix::tune_for_requests(listener.get(), kKeepalive);
    if (auto listening = posix::listen_on(listener.get()); !listening) {
      return pass(std::move(listening.error()));
    }
    if (auto added = set->add(listener.get(), EPOLLIN, kListener); !added) {
      return pass(std::move(added.error()));
    }
  }
  auto watched = posix::duplicate(set->descriptor());
  if (!watched) return pass(std::move(watched.error()));
  auto loop = std::make_shared<Loop>(executor, std::move(listener), *std::move(set),
                                     *std::move(watched), std::move(options), logger);
  loop->watch();
  return loop;
}

Server::Loop::Loop(const boost::asio::any_io_executor& executor, posix::Fd listener,
                   posix::EpollSet set, posix::Fd watched, ServerOptions options, Logger& logger)
    : listener_(std::move(listener)),
      set_(std::move(set)),
      watched_(executor, watched.release()),
      accept_timer_(executor),
      hold_timer_(executor),
      sweep_timer_(executor),
      farewell_timer_(executor),
      logger_(logger),
      refusals_(logger),
      endpoint_(listener_ ? posix::to_endpoint(posix::local_address(listener_.get())) : Endpoint{}),
      door_(std::move(options.door)),
      interpreter_({.limits = options.limits,
                    .dialect = options.dialect,
                    .refuse_unvalidated = options.refuse_unvalidated}) {}

void Server::Loop::stop() {
  if (is_stopped_) return;
  is_stopped_ = true;
  accept_timer_.cancel();
  hold_timer_.cancel();
  sweep_timer_.cancel();
  farewell_timer_.cancel();
  watched_.close();
  listener_.reset();
  connections_.for_each([this](Connection& connection) { connections_.close(connection); });
}

Stats Server::Loop::stats() const {
  const auto& store = interpreter_.store();
  return {.connections = connections_.size(),
          .keys = store.keys(),
          .stored_bytes = store.bytes(),
          .buffered_bytes = buffered_,
          .operations = interpreter_.operations(),
          .refused = refusals_.count()};
}

std::vector<Waiter> Server::Loop::waiters() {
  std::vector<Waiter> result;
  for (auto& pending : interpreter_.store().pending()) {
    const Connection* const connection = connections_.find(pending.client);
    if (connection == nullptr || !connection->waiting_since) continue;
    result.push_back({.client = to_endpoint(connection->peer),
                      .keys = std::move(pending.keys),
                      .since = *connection->waiting_since});
  }
  return result;
}

void Server::Loop::watch() {
  watched_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                      [self = shared_from_this()](const boost::system::error_code& error) {
                        if (error || self->is_stopped_) return;
                        self->turn();
                        self->watch();
                      });
}

void Server::Loop::turn() {
  now_.reset();
  for (int batches = 0; batches < kBatchesPerTurn; ++batches) {
    const auto ready = set_.ready();
    for (const auto& event : ready) {
      if (event.data.u64 == kListener) {
        accept_some();
      } else if (Connection* const connection = connections_.find(KvClient{event.data.u64})) {
        serve(*connection, event.events);
      }
    }
    send_to_woken();
    if (ready.size() < posix::EpollSet::kBatch) return;
  }
}

void Server::Loop::serve(Connection& connection, std::uint32_t events) {
  if (connection.is_dismissed) {
    see_off(connection);
    return;
  }
  const bool is_lost = (events & (EPOLLERR | EPOLLHUP)) != 0;
  const bool writes = !connection.out.empty() || connection.is_paused;
  if (writes && (is_lost || (events & EPOLLOUT) != 0)) {
    if (!send(connection, connection.out)) return;
    const bool waited_for_it = connection.is_paused || connection.has_finished;
    if (waited_for_it && connection.out.empty() && !digest(connection, {})) return;
  }
  const bool reads = (connection.interest & EPOLLIN) != 0;
  if (reads && (is_lost || (events & EPOLLIN) != 0) && !receive(connection)) return;
  set_interest(connection);
}

void Server::Loop::send_to_woken() {
  for (const KvClient client : woken_) {
    Connection* const connection = connections_.find(client);
    if (connection == nullptr) continue;
    connection->is_woken = false;
    if (connection->is_dismissed) continue;
    if (send(*connection, connection->out)) set_interest(*connection);
  }
  woken_.clear();
}

TimePoint Server::Loop::now() {
  if (!now_) now_ = std::chrono::steady_clock::now();
  return *now_;
}

}  // namespace muster::store

#include "tests/bench/load.hpp"

#include "tests/bench/dial.hpp"
#include "tests/bench/measure.hpp"

#include <algorithm>
#include <cerrno>
#include <span>
#include <string>
#include <sys/epoll.h>
#include <utility>

namespace muster::bench {
namespace {

constexpr std::size_t kReceiveBytes = 256 * 1024;
constexpr int kEventsAtOnce = 256;

/// Room for the latencies of a run; operations beyond it are counted, their latencies are not kept.
constexpr std::size_t kMostLatencies = 8'000'000;
constexpr std::size_t kFirstLatencies = 1'000'000;

struct Client {
  Client(const LoadOptions& options, std::uint32_t index)
      : conversation(options.peer, options.workload, index) {
    begun.resize(options.workload.depth);
  }

  posix::Fd socket;
  Conversation conversation;
  std::string outbox;
  std::size_t sent = 0;
  std::uint64_t exchanges_begun = 0;
  std::uint64_t exchanges_ended = 0;
  std::vector<TimePoint> begun;  ///< When the operations in flight began: a ring.
  bool waits_for_room = false;
};

class Load {
 public:
  explicit Load(const LoadOptions& options) : options_(options), buffer_(kReceiveBytes) {}

  Result<LoadFigures> run() {
    if (auto done = connect(); !done) return pass(done.error());
    figures_.latencies.reserve(kFirstLatencies);
    if (auto done = burst(options_.warm_up); !done) return pass(done.error());
    figures_.operations = 0;
    figures_.latencies.clear();
    if (auto done = measure(); !done) return pass(done.error());
    for (auto& client : clients_) {
      if (auto done = audit(client); !done) return pass(done.error());
    }
    return std::move(figures_);
  }

 private:
  Result<void> connect() {
    if (auto done = reserve_descriptors(options_.connections + 16); !done) return done;
    epoll_ = posix::Fd(::epoll_create1(EPOLL_CLOEXEC));
    clients_.reserve(options_.connections);
    for (std::uint32_t i = 0; i < options_.connections; ++i) {
      Client& client = clients_.emplace_back(options_, i);
      auto socket = dial(options_.server);
      if (!socket) return pass(socket.error());
      client.socket = std::move(*socket);
      const auto reply =
          exchange(client.socket.get(), client.conversation.setup(), kGreetingReplyBytes);
      if (!reply) return pass(reply.error());
      if (!client.conversation.is_setup_reply(*reply)) {
        return fail(Errc::InvalidArgument, "greet the store: wrong echo of PING");
      }
      set_nonblocking(client.socket.get());
      watch(client, EPOLL_CTL_ADD, EPOLLIN);
    }
    return {};
  }

  void watch(Client& client, int act, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = &client;
    ::epoll_ctl(epoll_.get(), act, client.socket.get(), &event);
  }

  /// Begins so many exchanges, in one write.
  Result<void> ask(Client& client, std::uint32_t exchanges) {
    const std::uint32_t each = client.conversation.exchanges_per_operation();
    now_ = monotonic_now();
    for (std::uint32_t i = 0; i < exchanges; ++i) {
      if (client.exchanges_begun % each == 0) {
        client.begun[client.exchanges_begun / each % client.begun.size()] = now_;
      }
      ++client.exchanges_begun;
      ++in_flight_;
      client.conversation.append_request(client.outbox);
    }
    return flush(client);
  }

  Result<void> flush(Client& client) {
    while (client.sent < client.outbox.size()) {
      const auto moved =
          send_some(client.socket.get(), std::span(client.outbox).subspan(client.sent));
      if (!moved) return pass(moved.error());
      if (*moved == 0) {
        if (!client.waits_for_room) watch(client, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
        client.waits_for_room = true;
        return {};
      }
      client.sent += *moved;
    }
    client.outbox.clear();
    client.sent = 0;
    if (std::exchange(client.waits_for_room, false)) watch(client, EPOLL_CTL_MOD, EPOLLIN);
    return {};
  }

  Result<void> answer(Client& client) {
    const auto moved = receive_some(client.socket.get(), buffer_);
    if (!moved) return pass(moved.error());
    const auto completed = client.conversation.take(std::span(buffer_).first(*moved));
    if (!completed) return pass(completed.error());
    if (*completed == 0) return {};
    const std::uint32_t each = client.conversation.exchanges_per_operation();
    now_ = monotonic_now();
    in_flight_ -= *completed;
    for (std::uint32_t i = 0; i < *completed; ++i) {
      if (++client.exchanges_ended % each != 0) continue;
      ++figures_.operations;
      if (figures_.latencies.size() == kMostLatencies) continue;
      const auto slot = (client.exchanges_ended / each - 1) % client.begun.size();
      figures_.latencies.push_back(static_cast<std::uint32_t>(
          std::min<Duration::rep>((now_ - client.begun[slot]).count(), UINT32_MAX)));
    }
    // An operation that was begun is ended, so that a burst ends between operations.
    const bool half_way = client.exchanges_ended % each != 0;
    return asking_ || half_way ? ask(client, *completed) : Result<void>{};
  }

  Result<void> turn() {
    epoll_event events[kEventsAtOnce];
    const int ready = ::epoll_wait(epoll_.get(), events, kEventsAtOnce,
                                   static_cast<int>(std::chrono::milliseconds(kSilence).count()));
    if (ready == 0) {
      return fail(Errc::Timeout, "wait for replies of " + to_string(to_endpoint(options_.server)) +
                                     ": none came within 20 s");
    }
    for (int i = 0; i < ready; ++i) {
      auto& client = *static_cast<Client*>(events[i].data.ptr);
      if ((events[i].events & EPOLLOUT) != 0) {
        if (auto done = flush(client); !done) return done;
      }
      if ((events[i].events & ~std::uint32_t{EPOLLOUT}) != 0) {
        if (auto done = answer(client); !done) return done;
      }
    }
    now_ = monotonic_now();
    return {};
  }

  /// Operations for so long, until the last reply is there.
  Result<void> burst(Duration length) {
    const TimePoint end = monotonic_now() + length;
    asking_ = true;
    for (auto& client : clients_) {
      if (auto done = ask(client, options_.workload.depth); !done) return done;
    }
    while (in_flight_ > 0) {
      if (auto done = turn(); !done) return done;
      asking_ = asking_ && now_ < end && figures_.operations < options_.most_operations;
    }
    return {};
  }

  /// From a server at rest to a server at rest, so that all of its work for these operations is in
  /// the figure.
  Result<void> measure() {
    const auto server_before = cpu_at_rest(options_.server_pid);
    if (!server_before) return pass(server_before.error());
    const Duration own_before = own_cpu();
    const TimePoint begin = monotonic_now();
    if (auto done = burst(options_.measured); !done) return done;
    figures_.elapsed = monotonic_now() - begin;
    figures_.own_cpu = own_cpu() - own_before;
    const auto server_after = cpu_at_rest(options_.server_pid);
    if (!server_after) return pass(server_after.error());
    figures_.server_cpu = *server_after - *server_before;
    return {};
  }

  Result<void> audit(Client& client) {
    const std::string due = client.conversation.audit_reply();
    if (due.empty()) return {};
    // Blocking again, for one exchange by itself.
    watch(client, EPOLL_CTL_DEL, 0);
    set_blocking(client.socket.get());
    const auto reply = exchange(client.socket.get(), client.conversation.audit(), due.size());
    if (!reply) return pass(reply.error());
    if (*reply == due) return {};
    return fail(Errc::Internal, "audit: the store does not hold the value that was set last");
  }

  const LoadOptions& options_;
  posix::Fd epoll_;
  std::vector<Client> clients_;
  std::vector<char> buffer_;
  LoadFigures figures_;
  std::uint64_t in_flight_ = 0;  ///< Exchanges, on all connections.
  TimePoint now_{};
  bool asking_ = true;
};

}  // namespace

Result<LoadFigures> run_load(const LoadOptions& options) { return Load(options).run(); }

}  // namespace muster::bench

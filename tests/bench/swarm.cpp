#include "tests/bench/swarm.hpp"

#include "rendezvous/client/farewell.hpp"
#include "rendezvous/client/frames.hpp"
#include "rendezvous/client/secret.hpp"
#include "tests/bench/crowd.hpp"
#include "tests/bench/dial.hpp"
#include "tests/bench/measure.hpp"

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <sys/epoll.h>
#include <utility>

namespace muster::bench {
namespace {

constexpr int kEventsAtOnce = 512;
constexpr int kPingsALease = 5;
constexpr std::uint16_t kStorePort = 4711;  // Nobody ever comes to it.
constexpr std::string_view kNonce = "a nonce of enough bytes";
constexpr std::string_view kVersion = "bench";

std::string secret_of(std::uint32_t index) { return "secret of agent " + std::to_string(index); }

std::string address_of(std::uint32_t index) {
  return "10." + std::to_string(index >> 16) + "." + std::to_string(index >> 8 & 255) + "." +
         std::to_string(index & 255);
}

template <class... Cases>
struct Visitor : Cases... {
  using Cases::operator()...;
};

}  // namespace

Result<Swarm> Swarm::make(Settings settings) {
  // Agents, farewells, and whatever else the process has open.
  if (auto done = reserve_descriptors(settings.nodes + 64); !done) return pass(done.error());
  Swarm swarm(std::move(settings));
  auto addresses = posix::numeric_address(swarm.settings_.server);
  if (!addresses) return pass(addresses.error());
  swarm.address_ = *addresses;
  swarm.epoll_ = posix::Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!swarm.epoll_) return pass(posix::errno_error(errno, "make an epoll set"));
  return swarm;
}

Hello Swarm::hello_of(std::uint32_t index) const {
  Hello hello;
  hello.job = settings_.job;
  hello.incarnation = rendezvous::incarnation_of(secret_of(index));
  hello.machine = "machine " + std::to_string(index);
  hello.name = "node-" + std::to_string(index);
  hello.version = kVersion;
  hello.slots = 8;
  hello.store = {address_of(index), kStorePort};
  hello.store_is_fixed = true;
  hello.addresses = {address_of(index)};
  hello.settings.min_nodes = std::max(1U, settings_.nodes - 1);
  hello.settings.max_nodes = settings_.nodes;
  hello.settings.lease = settings_.lease;
  hello.ping = 1;
  return hello;
}

Result<void> Swarm::dial(std::uint32_t index) {
  auto socket = dial_nonblocking(address_);
  if (!socket) return pass(socket.error());
  Agent& agent = agents_[index];
  agent.socket = std::move(*socket);
  agent.secret = secret_of(index);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = index;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, agent.socket.get(), &event);
  // On loopback a connection is there when connect returns.
  std::string opening(rendezvous::kMagic);
  rendezvous::encode(
      rendezvous::ClientFrame(rendezvous::Open{std::string(kVersion), std::string(kNonce)}),
      opening);
  const auto sent = send_some(agent.socket.get(), opening);
  if (!sent) return pass(sent.error());
  agent.bytes.sent += *sent;
  if (*sent == opening.size()) return {};
  return fail(Errc::Unavailable, "open an attendance: no room for its first bytes");
}

/// Waits for what comes next, until `until` at most, and answers it.
Result<void> Swarm::turn(TimePoint until) {
  if (auto done = send_due_pings(); !done) return done;
  const TimePoint wake = std::min(until, greeted_ > 0 ? ping_at_ : until);
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(wake - monotonic_now());
  epoll_event events[kEventsAtOnce];
  const int count = ::epoll_wait(epoll_.get(), events, kEventsAtOnce,
                                 static_cast<int>(std::max<std::int64_t>(0, wait.count())));
  if (count < 0 && errno != EINTR) return pass(posix::errno_error(errno, "wait for orders"));
  for (int i = 0; i < count; ++i) {
    if (auto done = take(agents_[events[i].data.u64]); !done) return done;
  }
  return {};
}

Result<void> Swarm::send_due_pings() {
  const Duration interval =
      settings_.lease / kPingsALease / std::max<std::size_t>(1, agents_.size());
  const TimePoint now = monotonic_now();
  if (greeted_ == 0) ping_at_ = now;
  for (; ping_at_ <= now; ping_at_ += interval) {
    Agent& agent = agents_[next_ping_++ % agents_.size()];
    if (!agent.greeted || !agent.socket) continue;
    if (auto done = say(agent, AgentMessage(Ping{++agent.pings})); !done) return done;
  }
  return {};
}

Result<void> Swarm::say(Agent& agent, const rendezvous::ClientFrame& frame) {
  std::string bytes;
  rendezvous::encode(frame, bytes);
  const auto sent = send_some(agent.socket.get(), bytes);
  if (!sent) return pass(sent.error());
  agent.bytes.sent += *sent;
  if (*sent == bytes.size()) return {};
  return fail(Errc::Unavailable, "report to the server: it does not read");
}

Result<void> Swarm::take(Agent& agent) {
  if (!agent.socket) return {};
  static char buffer[1 << 16];
  const auto moved = receive_some(agent.socket.get(), buffer);
  if (!moved) return pass(moved.error());
  agent.bytes.received += *moved;
  agent.received.append(buffer, *moved);
  std::string_view rest = agent.received;
  if (!agent.greeted) {
    if (rest.size() < rendezvous::kMagic.size()) return {};
    if (rendezvous::compare_magic(rest) != rendezvous::Magic::Ours) {
      return fail(Errc::InvalidArgument, "open an attendance: no server of muster answers");
    }
    rest.remove_prefix(rendezvous::kMagic.size());
  }
  while (true) {
    const auto body = rendezvous::first_frame(rest, rendezvous::kMaxFrameBytes);
    if (!body) return pass(body.error());
    if (!*body) break;
    rest.remove_prefix(rendezvous::kFrameHeaderBytes + (*body)->size());
    const auto frame = rendezvous::decode_server_frame(**body);
    if (!frame) return pass(frame.error());
    if (!*frame) continue;
    if (auto done = take_frame(agent, **frame); !done) return done;
  }
  // Before the greeting the magic stays in front: it was not taken off for good.
  if (agent.greeted) agent.received.erase(0, agent.received.size() - rest.size());
  return {};
}

Result<void> Swarm::take_frame(Agent& agent, const rendezvous::ServerFrame& frame) {
  if (std::holds_alternative<rendezvous::Challenge>(frame)) {
    agent.greeted = true;
    ++greeted_;
    const auto index = static_cast<std::uint32_t>(&agent - agents_.data());
    rendezvous::Greeting greeting{.hello = hello_of(index), .proof = {}};
    if (auto done = say(agent, std::move(greeting)); !done) return done;
    return say(agent, AgentMessage(Ping{++agent.pings}));
  }
  const auto* message = std::get_if<ServerMessage>(&frame);
  if (message == nullptr) return {};
  return std::visit(Visitor{
                        [](const Refusal& refusal) -> Result<void> {
                          return fail(Errc::InvalidArgument,
                                      "the server refuses an agent: " + refusal.message);
                        },
                        [](const Pong& pong) -> Result<void> {
                          if (!pong.gone) return {};
                          return fail(Errc::Stale, "the server gave a living agent's ranks away");
                        },
                        [&](const Directive& directive) { return obey(agent, directive.order); },
                        [&](const Waiting&) -> Result<void> {
                          agent.waits = true;
                          return {};
                        },
                        [](const auto&) -> Result<void> { return {}; },
                    },
                    *message);
}

Result<void> Swarm::obey(Agent& agent, const Order& order) {
  const TimePoint now = monotonic_now();
  return std::visit(
      Visitor{
          [&](const Assignment& assignment) -> Result<void> {
            if (assignment.round > progress_.round) {
              progress_.round = assignment.round;
              progress_.assigned = progress_.started = 0;
              progress_.first_assigned = now;
            }
            if (assignment.round < progress_.round || agent.assigned == assignment.round) return {};
            agent.assigned = assignment.round;
            agent.node_rank = assignment.node_rank;
            ++progress_.assigned;
            progress_.last_assigned = now;
            return say(agent, AgentMessage(Report(Acknowledged{assignment.round})));
          },
          [&](const MasterUp& up) -> Result<void> {
            if (up.round != agent.assigned || agent.started == up.round) return {};
            agent.started = up.round;
            ++progress_.started;
            return say(agent, AgentMessage(Report(Started{up.round})));
          },
          [&](const Stop& stop) -> Result<void> {
            if (stop.round > progress_.stop) {
              progress_.stop = stop.round;
              progress_.stopped = 0;
              progress_.first_stopped = now;
            }
            if (agent.stopped == stop.round) return {};
            agent.stopped = stop.round;
            ++progress_.stopped;
            progress_.last_stopped = now;
            if (auto done = say(agent, AgentMessage(Report(Stopped{stop.round}))); !done)
              return done;
            const auto index = static_cast<std::uint32_t>(&agent - agents_.data());
            Empty empty{
                .round = stop.round, .victims = {}, .next_store = {address_of(index), kStorePort}};
            return say(agent, AgentMessage(Report(std::move(empty))));
          },
          [&](const Verdict& verdict) -> Result<void> {
            return fail(Errc::Internal, "the job ended: " + verdict.summary);
          },
          [](const auto&) -> Result<void> { return {}; },
      },
      order);
}

Result<void> Swarm::wait_for_round(RoundId above, std::uint32_t nodes) {
  const TimePoint give_up = monotonic_now() + kSilence;
  while (progress_.round <= above || progress_.assigned < nodes) {
    if (auto done = turn(give_up); !done) return done;
    if (monotonic_now() >= give_up) {
      return fail(Errc::Timeout, "wait for a round of " + std::to_string(nodes) +
                                     " nodes: " + std::to_string(progress_.assigned) +
                                     " have an Assignment after 20 s");
    }
  }
  return check_ranks(nodes);
}

Result<void> Swarm::check_ranks(std::uint32_t nodes) const {
  std::vector<bool> seen(nodes);
  for (const Agent& agent : agents_) {
    if (!agent.socket || agent.assigned != progress_.round) continue;
    const std::uint32_t rank = agent.node_rank.value;
    if (rank >= nodes || seen[rank]) {
      return fail(Errc::InvalidArgument, "node rank " + std::to_string(rank) + " of " +
                                             std::to_string(nodes) + " was given twice or is none");
    }
    seen[rank] = true;
  }
  if (std::ranges::count(seen, true) == nodes) return {};
  return fail(Errc::InvalidArgument,
              "a round of " + std::to_string(nodes) + " nodes lacks some of their ranks");
}

Result<Swarm::Span> Swarm::join(std::uint32_t agents, std::uint32_t nodes) {
  const RoundId above = progress_.round;
  const TimePoint begin = monotonic_now();
  const TimePoint give_up = begin + kSilence;
  auto dialled = static_cast<std::uint32_t>(agents_.size());
  const std::uint32_t before = greeted_;
  agents_.resize(agents_.size() + agents);
  while (greeted_ - before < agents) {
    while (dialled < agents_.size() &&
           dialled - (agents_.size() - agents) - (greeted_ - before) < kMostOnTheirWay) {
      if (auto done = dial(dialled++); !done) return pass(done.error());
    }
    if (auto done = turn(give_up); !done) return pass(done.error());
    if (monotonic_now() >= give_up) {
      return fail(Errc::Timeout, "open attendances: not all within 20 s");
    }
  }
  if (auto done = wait_for_round(above, nodes); !done) return pass(done.error());
  return Span{progress_.first_assigned - begin, progress_.last_assigned - begin};
}

Result<void> Swarm::start() {
  const TimePoint give_up = monotonic_now() + kSilence;
  while (progress_.started < progress_.assigned) {
    if (auto done = turn(give_up); !done) return done;
    if (monotonic_now() >= give_up) {
      return fail(Errc::Timeout, "start workers: " + std::to_string(progress_.started) + " of " +
                                     std::to_string(progress_.assigned) +
                                     " agents were told that the master is up");
    }
  }
  return {};
}

Result<void> Swarm::stand_by() {
  agents_.emplace_back();
  if (auto done = dial(static_cast<std::uint32_t>(agents_.size() - 1)); !done) return done;
  const TimePoint give_up = monotonic_now() + kSilence;
  while (!agents_.back().waits) {
    if (auto done = turn(give_up); !done) return done;
    if (monotonic_now() >= give_up) {
      return fail(Errc::Timeout, "stand by as a spare: the server says nothing of it");
    }
  }
  return {};
}

Result<void> Swarm::rest(Duration time) {
  const TimePoint end = monotonic_now() + time;
  while (monotonic_now() < end) {
    if (auto done = turn(end); !done) return done;
  }
  return {};
}

Result<Swarm::Parted> Swarm::lose_one(std::uint32_t nodes) {
  const auto lost = std::ranges::find_if(agents_, [&](const Agent& agent) {
    return agent.socket && agent.assigned == progress_.round && agent.node_rank.value == nodes / 2;
  });
  if (lost == agents_.end()) return fail(Errc::Internal, "lose an agent: there is none");
  const RoundId round = progress_.round;
  lost->socket.reset();
  const TimePoint begin = monotonic_now();
  Farewell farewell;
  farewell.job = settings_.job;
  farewell.secret = lost->secret;
  farewell.round = round;
  farewell.reason = "killed by SIGKILL";
  const auto said = rendezvous::say_farewell(settings_.server, std::nullopt, farewell, kSilence);
  if (!said) return pass(said.error());
  if (auto done = wait_for_round(round, nodes); !done) return pass(done.error());
  return Parted{.stopped = {progress_.first_stopped - begin, progress_.last_stopped - begin},
                .assigned = {progress_.first_assigned - begin, progress_.last_assigned - begin}};
}

std::vector<std::uint64_t> Swarm::figures(std::uint64_t Bytes::* which) const {
  std::vector<std::uint64_t> found;
  for (const Agent& agent : agents_) {
    if (agent.socket && agent.node_rank.value != 0) found.push_back(agent.bytes.*which);
  }
  std::ranges::sort(found);
  return found;
}

Swarm::Bytes Swarm::middle_bytes() const {
  const auto sent = figures(&Bytes::sent), received = figures(&Bytes::received);
  if (sent.empty()) return {};
  return {sent[sent.size() / 2], received[received.size() / 2]};
}

Swarm::Bytes Swarm::most_bytes() const {
  const auto sent = figures(&Bytes::sent), received = figures(&Bytes::received);
  if (sent.empty()) return {};
  return {sent.back(), received.back()};
}

}  // namespace muster::bench

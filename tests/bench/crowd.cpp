#include "tests/bench/crowd.hpp"

#include "tests/bench/dial.hpp"
#include "tests/bench/measure.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <sys/epoll.h>
#include <unistd.h>
#include <utility>

namespace muster::bench {
namespace {

constexpr std::uint32_t kNonce = 0x1234;
constexpr std::size_t kAnswerBytes = 8;
constexpr int kEventsAtOnce = 512;
constexpr std::string_view kCounterKey = "init/";

std::string add_request() {
  std::string out;
  wire::add(out, std::string(kCounterKey), 1);
  return out;
}

/// WAIT, and a PING that shows when the server has taken it.
std::string wait_request(const std::string& key) {
  std::string out;
  wire::wait(out, key);
  wire::ping(out, kNonce);
  return out;
}

std::string greeting(Peer peer, wire::FloorPart part, const std::string& request,
                     std::size_t reply) {
  std::string out;
  if (peer == Peer::Floor) {
    wire::floor_greeting(out, part, static_cast<std::uint32_t>(request.size()),
                         static_cast<std::uint32_t>(reply));
  } else {
    wire::validate(out);
    wire::ping(out, kNonce);
  }
  return out;
}

/// Small requests on a quiet connection: they fit into the socket's buffer, or something is wrong.
Result<void> send_whole(int socket, const std::string& bytes) {
  const auto moved = send_some(socket, bytes);
  if (!moved) return pass(moved.error());
  if (*moved != bytes.size()) return fail(Errc::Internal, "send a request: no room for its bytes");
  return {};
}

}  // namespace

Result<Opened> Crowd::open(std::uint32_t connections) {
  if (auto done = reserve_descriptors(connections + 16); !done) return pass(done.error());
  epoll_ = posix::Fd(::epoll_create1(EPOLL_CLOEXEC));
  members_.resize(connections);
  const auto cpu_before = cpu_at_rest(server_pid_);
  if (!cpu_before) return pass(cpu_before.error());

  const TimePoint begin = monotonic_now();
  std::uint32_t started = 0;
  std::uint32_t answered = 0;
  while (answered < connections) {
    while (started < connections && started - answered < kMostOnTheirWay) {
      if (auto done = start(members_[started++]); !done) return pass(done.error());
    }
    const auto indices = ready();
    if (!indices) return pass(indices.error());
    for (const std::uint64_t index : *indices) {
      const auto done = go_on(members_[index]);
      if (!done) return pass(done.error());
      if (*done) ++answered;
    }
  }
  Opened opened{.elapsed = monotonic_now() - begin};

  const auto cpu_after = cpu_at_rest(server_pid_);
  if (!cpu_after) return pass(cpu_after.error());
  opened.server_cpu = *cpu_after - *cpu_before;
  if (auto done = check_answers(); !done) return pass(done.error());
  return opened;
}

/// On loopback a connection is there when connect returns, so the greeting goes out at once.
Result<void> Crowd::start(Member& member) {
  auto socket = dial_nonblocking(server_);
  if (!socket) return pass(socket.error());
  member.socket = std::move(*socket);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = static_cast<std::uint64_t>(&member - members_.data());
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, member.socket.get(), &event);
  return send_whole(member.socket.get(),
                    greeting(peer_, wire::FloorPart::Answer, add_request(), kAnswerBytes));
}

/// Takes what has come; true if that completes the member's answer.
Result<bool> Crowd::go_on(Member& member) {
  char buffer[64];
  const auto moved = receive_some(member.socket.get(), buffer);
  if (!moved) return pass(moved.error());
  member.received.append(buffer, *moved);
  if (!member.greeted && member.received.size() >= kGreetingReplyBytes) {
    member.greeted = true;
    if (peer_ == Peer::Store && std::memcmp(member.received.data(), &kNonce, sizeof kNonce) != 0) {
      return fail(Errc::InvalidArgument, "open a connection: wrong echo of PING");
    }
    if (auto done = send_whole(member.socket.get(), add_request()); !done)
      return pass(done.error());
  }
  return *moved > 0 && member.received.size() == kGreetingReplyBytes + kAnswerBytes;
}

Result<void> Crowd::check_answers() const {
  if (peer_ == Peer::Floor) return {};
  std::vector<std::int64_t> answers;
  for (const auto& member : members_) {
    std::memcpy(&answers.emplace_back(), member.received.data() + kGreetingReplyBytes,
                kAnswerBytes);
  }
  std::ranges::sort(answers);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i] - answers.front() != static_cast<std::int64_t>(i)) {
      return fail(Errc::InvalidArgument,
                  "open connections: two ADDs got one answer, or one is lost");
    }
  }
  return {};
}

Result<Woken> Crowd::wake() {
  // Never used before, by an earlier run either: the server may be an old one.
  const std::string key =
      "bench/wake/" + std::to_string(::getpid()) + "/" + std::to_string(wakes_++);
  std::string release;
  wire::set(release, key, "1");
  if (!waker_) {
    auto socket = dial(server_);
    if (!socket) return pass(socket.error());
    waker_ = std::move(*socket);
    const auto hello = greeting(peer_, wire::FloorPart::Release, release, 0);
    if (const auto echo = exchange(waker_.get(), hello, kGreetingReplyBytes); !echo) {
      return pass(echo.error());
    }
  }
  if (auto done = ask_all_to_wait(key); !done) return pass(done.error());

  const auto cpu_before = cpu_at_rest(server_pid_);
  if (!cpu_before) return pass(cpu_before.error());
  const TimePoint begin = monotonic_now();
  if (auto done = send_whole(waker_.get(), release); !done) return pass(done.error());
  auto wakes = wait_for_all(begin);
  if (!wakes) return pass(wakes.error());
  const auto cpu_after = cpu_at_rest(server_pid_);
  if (!cpu_after) return pass(cpu_after.error());
  return Woken{.first = wakes->front(),
               .half = (*wakes)[wakes->size() / 2],
               .all = wakes->back(),
               .server_cpu = *cpu_after - *cpu_before};
}

/// A floor is greeted on new terms: its waiters are connections of their own.
Result<void> Crowd::ask_all_to_wait(const std::string& key) {
  const std::string request = wait_request(key);
  for (auto& member : members_) {
    set_blocking(member.socket.get());
    if (peer_ == Peer::Floor && member.greeted) {
      auto socket = dial(server_);
      if (!socket) return pass(socket.error());
      member.socket = std::move(*socket);
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u64 = static_cast<std::uint64_t>(&member - members_.data());
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, member.socket.get(), &event);
      const auto hello = greeting(peer_, wire::FloorPart::HoldReply, request, kGreetingReplyBytes);
      if (const auto echo = exchange(member.socket.get(), hello, kGreetingReplyBytes); !echo) {
        return pass(echo.error());
      }
      member.greeted = false;
    }
    if (auto done = send_whole(member.socket.get(), request); !done) return done;
  }
  for (const auto& member : members_) {
    const auto echo = exchange(member.socket.get(), "", kGreetingReplyBytes);
    if (!echo) return pass(echo.error());
    if (std::memcmp(echo->data(), &kNonce, sizeof kNonce) != 0 && peer_ == Peer::Store) {
      return fail(Errc::InvalidArgument,
                  "wait for a key: woken, or answered, before the key was set");
    }
  }
  return {};
}

Result<std::vector<Duration>> Crowd::wait_for_all(TimePoint begin) {
  std::vector<Duration> wakes;
  wakes.reserve(members_.size());
  while (wakes.size() < members_.size()) {
    const auto indices = ready();
    if (!indices) return pass(indices.error());
    for (const std::uint64_t index : *indices) {
      char reply[2];
      const auto moved = receive_some(members_[index].socket.get(), reply);
      if (!moved) return pass(moved.error());
      if (*moved != 1 || reply[0] != '\0') {
        return fail(Errc::InvalidArgument, "wake-up: not one byte of zero");
      }
      wakes.push_back(monotonic_now() - begin);
    }
  }
  return wakes;
}

Result<std::vector<std::uint64_t>> Crowd::ready() {
  epoll_event events[kEventsAtOnce];
  const int count = ::epoll_wait(epoll_.get(), events, kEventsAtOnce,
                                 static_cast<int>(std::chrono::milliseconds(kSilence).count()));
  if (count <= 0) {
    return fail(Errc::Timeout, "wait for replies of " + to_string(to_endpoint(server_)) +
                                   ": none came within 20 s");
  }
  std::vector<std::uint64_t> indices;
  indices.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) indices.push_back(events[i].data.u64);
  return indices;
}

}  // namespace muster::bench

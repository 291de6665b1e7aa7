#include "agent/run/keeper.hpp"

#include "agent/run/farewell_note.hpp"
#include "base/posix/boot_clock.hpp"
#include "base/posix/fork.hpp"
#include "base/posix/process.hpp"
#include "base/posix/process_tree.hpp"
#include "fake_rendezvous.hpp"

#include <csignal>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

using namespace muster;
using namespace std::chrono_literals;

namespace {

constexpr auto kPatience = 20s;  // For what must happen, on the slowest machine.

/// `path` may begin without a lease: so a worker of a test starts, whatever the page says.
int start(const std::vector<std::string>& argv, const std::atomic<std::int64_t>* lease = nullptr) {
  posix::Command command;
  command.path = "/bin/sh";
  command.argv = argv;
  command.environment = {"PATH=/usr/bin:/bin"};
  command.lease_ends = lease;
  const auto process = posix::Process::spawn(command);
  return process ? process->pid() : 0;
}

int start_sleeper() { return start({"sh", "-c", "sleep 1000"}); }

void tell(const posix::Fd& pipe, int number) {
  if (::write(pipe.get(), &number, sizeof number) != sizeof number) ::_exit(99);
}

int hear(const posix::Fd& pipe) {
  pollfd waiting{.fd = pipe.get(), .events = POLLIN, .revents = 0};
  int number = 0;
  if (::poll(&waiting, 1, std::chrono::milliseconds(kPatience).count()) != 1) return -1;
  return ::read(pipe.get(), &number, sizeof number) == sizeof number ? number : -1;
}

bool ends_within(const posix::Fd& pidfd, std::chrono::milliseconds patience) {
  pollfd waiting{.fd = pidfd.get(), .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, static_cast<int>(patience.count())) == 1;
}

/// A keeper with an agent that does what the test wants, in processes of their own. `up` is for the
/// agent to tell numbers.
class Kept {
 public:
  explicit Kept(const std::function<int(const agent::KeeperLink&, const posix::Fd& up)>& act) {
    auto pipe = posix::make_pipe().value();
    pid_ = posix::fork_process().value();
    if (pid_ == 0) {
      pipe.reader.reset();
      ::signal(SIGALRM, SIG_DFL);
      ::_exit(agent::run_kept(
          [&](const agent::KeeperLink& keeper) { return act(keeper, pipe.writer); }));
    }
    pidfd_ = posix::open_pidfd(pid_).value();
    up_ = std::move(pipe.reader);
  }
  ~Kept() {
    ::kill(pid_, SIGKILL);  // Then the agent ends what is left; unless it is frozen:
    if (agent_ > 0) ::kill(agent_, SIGKILL);
    (void)posix::end_descendants(kPatience);
  }

  int hear() { return ::hear(up_); }
  /// The agent has told its pid first.
  int agent() {
    if (agent_ == 0) agent_ = hear();
    return agent_;
  }
  std::optional<int> exit_code() {
    if (!ends_within(pidfd_, kPatience)) return std::nullopt;
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? std::optional(WEXITSTATUS(status)) : std::nullopt;
  }

 private:
  int pid_ = 0;
  int agent_ = 0;
  posix::Fd pidfd_;
  posix::Fd up_;
};

agent::FarewellNote note_for(const Endpoint& server) {
  return {.server = server,
          .token = std::nullopt,
          .farewell = {.job = "job-1",
                       .secret = "the secret",
                       .round = RoundId{3, 4},
                       .reason = "its launcher left",
                       .preempted = false}};
}

/// Runs a server until it hears a farewell, or the patience is over.
std::optional<Farewell> await_farewell(boost::asio::io_context& loop,
                                       agent::FakeRendezvous& server) {
  std::optional<Farewell> heard;
  server.on_farewell = [&](const Farewell& farewell) { heard = farewell; };
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!heard && std::chrono::steady_clock::now() < deadline) loop.run_one_for(100ms);
  loop.poll();  // The answer goes out.
  return heard;
}

}  // namespace

TEST_CASE("past the lease's end the keeper kills what is below a frozen agent, and not the agent",
          "[agent][keeper]") {
  posix::adopt_orphans();
  constexpr auto kLease = 300ms;
  Kept kept([&](const agent::KeeperLink& keeper, const posix::Fd& up) {
    tell(up, ::getpid());
    keeper.page.renew(posix::boot_now() + kLease);
    // A worker with a child in a session of its own.
    tell(up, start({"sh", "-c", "setsid sleep 1000 & sleep 1000"}, &keeper.page.ends()));
    ::raise(SIGSTOP);
    // Thawed: it knows nothing of the lease yet, and starts something behind the page's back.
    tell(up, start_sleeper());
    ::pause();
    return 0;
  });
  const int frozen = kept.agent();
  REQUIRE(frozen > 0);
  const auto agent = posix::open_pidfd(frozen).value();
  const auto began = posix::boot_now();
  const auto worker = posix::open_pidfd(kept.hear()).value();
  REQUIRE(ends_within(worker, kPatience));
  CHECK(posix::boot_now() - began >= kLease / 2);
  CHECK_FALSE(ends_within(agent, 0ms));

  ::kill(frozen, SIGCONT);
  const auto late = posix::open_pidfd(kept.hear());
  if (late) CHECK(ends_within(*late, kPatience));  // Else it is gone already.
  CHECK_FALSE(ends_within(agent, 0ms));
}

TEST_CASE("the keeper kills no more once the lease is renewed", "[agent][keeper]") {
  posix::adopt_orphans();
  Kept kept([&](const agent::KeeperLink& keeper, const posix::Fd& up) {
    tell(up, ::getpid());
    keeper.page.renew(posix::boot_now());
    const int first = start_sleeper();
    tell(up, first);
    if (!ends_within(posix::open_pidfd(first).value(), kPatience)) return 1;  // The keeper's work.
    keeper.page.renew(posix::boot_now() + 1h);
    tell(up, start({"sh", "-c", "sleep 1000"}, &keeper.page.ends()));
    ::pause();
    return 0;
  });
  REQUIRE(kept.agent() > 0);
  REQUIRE(kept.hear() > 0);
  const int pid = kept.hear();
  REQUIRE(pid > 0);
  const auto second = posix::open_pidfd(pid).value();
  CHECK_FALSE(ends_within(second, 500ms));  // Several of the keeper's looks.
}

TEST_CASE("a lease that is renewed in time kills nobody; one that is cut short kills at once",
          "[agent][keeper]") {
  posix::adopt_orphans();
  const auto go = posix::make_pipe().value();
  Kept kept([&](const agent::KeeperLink& keeper, const posix::Fd& up) {
    tell(up, ::getpid());
    keeper.page.renew(posix::boot_now() + 200ms);
    const int pid = start({"sh", "-c", "sleep 1000"}, &keeper.page.ends());
    tell(up, pid);
    const auto worker = posix::open_pidfd(pid).value();
    for (int renewal = 0; renewal < 20; ++renewal) {
      keeper.page.renew(posix::boot_now() + 200ms);
      if (ends_within(worker, 30ms)) return 1;
    }
    keeper.page.renew(posix::boot_now() + 1h);
    tell(up, 1);
    if (hear(go.reader) != 1) return 1;
    keeper.page.renew(posix::boot_now());
    ::pause();
    return 0;
  });
  REQUIRE(kept.agent() > 0);
  const int pid = kept.hear();
  REQUIRE(pid > 0);
  const auto worker = posix::open_pidfd(pid).value();
  REQUIRE(kept.hear() == 1);
  CHECK_FALSE(ends_within(worker, 0ms));
  tell(go.writer, 1);
  CHECK(ends_within(worker, kPatience));
}

TEST_CASE("no lease: the keeper kills nothing", "[agent][keeper]") {
  posix::adopt_orphans();
  Kept kept([&](const agent::KeeperLink& keeper, const posix::Fd& up) {
    tell(up, ::getpid());
    tell(up, start_sleeper());  // Before any lease: a command of the agent's own.
    keeper.page.renew_for_ever();
    tell(up, start({"sh", "-c", "sleep 1000"}, &keeper.page.ends()));
    ::pause();
    return 0;
  });
  REQUIRE(kept.agent() > 0);
  const auto own = posix::open_pidfd(kept.hear()).value();
  const auto worker = posix::open_pidfd(kept.hear()).value();
  CHECK_FALSE(ends_within(own, 300ms));
  CHECK_FALSE(ends_within(worker, 0ms));
}

TEST_CASE("the keeper says farewell for an agent that was killed, once its workers are gone",
          "[agent][keeper]") {
  posix::adopt_orphans();
  boost::asio::io_context loop;
  agent::FakeRendezvous server(loop);
  Kept kept([&](const agent::KeeperLink& keeper, const posix::Fd& up) {
    tell(up, ::getpid());
    keeper.page.renew(posix::boot_now() + 1h);
    if (!keeper.farewell.write(encode(note_for(server.endpoint())))) return 1;
    tell(up, start_sleeper());
    ::pause();
    return 0;
  });
  REQUIRE(kept.agent() > 0);
  const auto worker = posix::open_pidfd(kept.hear()).value();
  ::kill(kept.agent(), SIGKILL);
  const auto farewell = await_farewell(loop, server);
  REQUIRE(farewell);
  CHECK(ends_within(worker, 0ms));
  CHECK(farewell->job == "job-1");
  CHECK(farewell->secret == "the secret");
  CHECK(farewell->round == RoundId{3, 4});
  CHECK(farewell->reason == "its agent was killed by SIGKILL (signal 9)");
  CHECK(kept.exit_code() == 75);
}

TEST_CASE("an agent that left in order has its farewell said with the reason that it left",
          "[agent][keeper]") {
  boost::asio::io_context loop;
  agent::FakeRendezvous server(loop);
  Kept kept([&](const agent::KeeperLink& keeper, const posix::Fd&) {
    return keeper.farewell.write(encode(note_for(server.endpoint()))) ? 7 : 1;
  });
  const auto farewell = await_farewell(loop, server);
  REQUIRE(farewell);
  CHECK(farewell->reason == "its launcher left");
  CHECK(kept.exit_code() == 7);
}

TEST_CASE("a server that is not there costs the keeper two seconds, not more", "[agent][keeper]") {
  const auto bound = posix::bind_tcp({"127.0.0.1", 0}).value();  // Not listening.
  const auto endpoint = posix::to_endpoint(posix::local_address(bound.get()));
  const auto began = std::chrono::steady_clock::now();
  Kept kept([&](const agent::KeeperLink& keeper, const posix::Fd&) {
    if (!keeper.farewell.write(encode(note_for(endpoint)))) return 1;
    ::raise(SIGKILL);
    return 0;
  });
  CHECK(kept.exit_code() == 75);
  const auto took = std::chrono::steady_clock::now() - began;
  CHECK(took >= 1900ms);
  CHECK(took < 4s);
}

TEST_CASE("an agent that left no note has no farewell said", "[agent][keeper]") {
  Kept kept([&](const agent::KeeperLink&, const posix::Fd&) { return 5; });
  CHECK(kept.exit_code() == 5);
}

TEST_CASE("a note comes back as it was written; half of one is none", "[agent][keeper]") {
  auto note = note_for({"fe80::1%eth0", 29400});
  note.token = "a token";
  note.farewell.job = std::string("any\0bytes\xff", 10);
  note.farewell.preempted = true;
  const auto text = agent::encode(note);
  const auto back = agent::decode_farewell_note(text).value();
  CHECK(back.server == note.server);
  CHECK(back.token == note.token);
  CHECK(back.farewell.job == note.farewell.job);
  CHECK(back.farewell.secret == note.farewell.secret);
  CHECK(back.farewell.round == note.farewell.round);
  CHECK(back.farewell.reason == note.farewell.reason);
  CHECK(back.farewell.preempted);
  for (std::size_t size = 0; size < text.size(); ++size) {
    CHECK_FALSE(agent::decode_farewell_note(std::string_view(text).substr(0, size)));
  }
  CHECK_FALSE(agent::decode_farewell_note(text + "x"));
}

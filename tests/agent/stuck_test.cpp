// Processes that survive SIGKILL. What stands for them is a worker that this process traces: dead
// or not, nobody else can reap it.

#include "one_round.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>

using namespace muster;
using namespace std::chrono_literals;

namespace {

constexpr auto kPatience = 60s;  // A tree has 10 s to become empty.

bool becomes_readable(int descriptor) {
  pollfd waiting{.fd = descriptor, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, std::chrono::milliseconds(kPatience).count()) == 1;
}

/// An agent in a process of its own, with one worker.
class Apart {
 public:
  Apart() {
    posix::adopt_orphans();
    const auto told = (folder_ / "pid").string();
    REQUIRE(::mkfifo(told.c_str(), 0600) == 0);
    const posix::Fd pids(::open(told.c_str(), O_RDWR | O_CLOEXEC));
    auto keeper = posix::make_pipe().value();  // It is dead when there is something to read.
    pid_ = posix::fork_process().value();
    if (pid_ == 0) {
      keeper.writer.reset();
      ::_exit(run(std::move(keeper.reader), told));
    }
    pidfd_ = posix::open_pidfd(pid_).value();
    keeper_ = std::move(keeper.writer);
    REQUIRE(becomes_readable(pids.get()));
    char text[16] = {};
    REQUIRE(::read(pids.get(), text, sizeof text - 1) > 0);
    worker_ = std::atoi(text);
  }
  ~Apart() {
    ::kill(pid_, SIGKILL);
    if (is_traced_) ::ptrace(PTRACE_DETACH, worker_, nullptr, nullptr);
    (void)posix::end_descendants(kPatience);
  }

  void trace_worker() {
    REQUIRE(::ptrace(PTRACE_SEIZE, worker_, nullptr, nullptr) == 0);
    is_traced_ = true;
  }
  void kill_keeper() const { REQUIRE(::write(keeper_.get(), "x", 1) == 1); }
  void terminate() const { ::kill(pid_, SIGTERM); }

  struct End {
    int farewells = 0;       ///< That it has said itself.
    bool left_note = false;  ///< For the keeper to say one.
    bool names_survivor = false;
  };
  std::optional<End> end() {
    if (!becomes_readable(pidfd_.get())) return std::nullopt;
    int status = 0;
    ::waitpid(pid_, &status, 0);
    if (!WIFEXITED(status)) return std::nullopt;
    return End{.farewells = WEXITSTATUS(status) & kFarewells,
               .left_note = (WEXITSTATUS(status) & kLeftNote) != 0,
               .names_survivor = (WEXITSTATUS(status) & kNamesSurvivor) != 0};
  }

 private:
  static constexpr int kFarewells = 7;
  static constexpr int kLeftNote = 8;
  static constexpr int kNamesSurvivor = 16;

  static int run(posix::Fd keeper_pidfd, const std::string& told) {
    agent::Fixture fixture;
    fixture.keeper.watch = std::move(keeper_pidfd);
    fixture.settings.stopping.grace = 1ms;
    fixture.settings.workers.push_back(agent::shell("echo $$ > " + told + "; exec sleep 1000"));
    (void)fixture.keeper.farewell.write("a note");
    agent::OneRound rendezvous(fixture.loop, agent::alone(1));
    agent::Agent agent(fixture.loop, std::move(fixture.settings), fixture.keeper, rendezvous,
                       *fixture.logger);
    const auto outcome = agent.run();
    const bool names_survivor = outcome && outcome->survivors.size() == 1;
    return static_cast<int>(rendezvous.farewells.size()) |
           (fixture.keeper.farewell.read().empty() ? 0 : kLeftNote) |
           (names_survivor ? kNamesSurvivor : 0);
  }

  agent::Folder folder_;
  int pid_ = 0;
  int worker_ = 0;
  bool is_traced_ = false;
  posix::Fd pidfd_;
  posix::Fd keeper_;
};

}  // namespace

TEST_CASE("an agent whose keeper died says farewell once its workers are gone", "[agent][stuck]") {
  Apart apart;
  apart.kill_keeper();
  const auto end = apart.end();
  REQUIRE(end);
  CHECK(end->farewells == 1);
}

TEST_CASE("while a process survives SIGKILL nobody says farewell, and it is waited for once",
          "[agent][stuck]") {
  Apart orphaned;
  orphaned.trace_worker();
  Apart stuck;
  stuck.trace_worker();
  const auto began = std::chrono::steady_clock::now();
  orphaned.kill_keeper();
  stuck.terminate();
  for (auto* apart : {&orphaned, &stuck}) {
    const auto end = apart->end();
    REQUIRE(end);
    CHECK(end->farewells == 0);
    CHECK_FALSE(end->left_note);
    CHECK(end->names_survivor == (apart == &stuck));  // An orphaned one has no outcome to tell.
  }
  CHECK(std::chrono::steady_clock::now() - began < 18s);  // 10 s and what a slow machine takes.
}

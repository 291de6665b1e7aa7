#include "agent/run/agent.hpp"
#include "base/posix/fork.hpp"
#include "base/posix/process_tree.hpp"
#include "base/posix/socket.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>

using namespace muster;
namespace fs = std::filesystem;

namespace {

/// A rendezvous that gives one round, whatever Assignment the test likes, and then the verdict.
class OneRound : public rendezvous::Attendance {
 public:
  OneRound(boost::asio::io_context& loop, Assignment assignment)
      : loop_(loop), assignment_(assignment) {}

  void on_order(OnOrder handler) override { handler_ = std::move(handler); }
  void report(Report report) override {
    if (const auto* hello = std::get_if<Hello>(&report)) {
      hello_ = *hello;
      order(assignment_);
    } else if (const auto* failed = std::get_if<Failed>(&report)) {
      failures.push_back(failed->failure);
      order(Stop{assignment_.round, SIGTERM, "a worker failed"});
    } else if (std::holds_alternative<Succeeded>(report)) {
      succeeded = true;
    } else if (const auto* empty = std::get_if<Empty>(&report)) {
      victims = empty->victims;
      order(Verdict{});
    }
  }

  const Hello& hello() const { return hello_; }
  bool succeeded = false;
  std::vector<WorkerFailure> failures;
  std::vector<Victim> victims;

 private:
  void order(Order order) {
    boost::asio::post(loop_, [this, order = std::move(order)] { handler_(order); });
  }

  boost::asio::io_context& loop_;
  Assignment assignment_;
  Hello hello_;
  OnOrder handler_;
};

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("agent_run_test." + std::to_string(::getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

agent::WorkerPlan shell(const std::string& script) {
  return {.path = "/bin/sh", .argv = {"sh", "-c", script}, .out = {}, .err = {}};
}

/// Everything that an Agent needs, with this process as its own keeper.
struct Fixture {
  Fixture() {
    posix::adopt_orphans();
    sigemptyset(&keeper.user_signals.blocked);  // An agent of an earlier case has blocked some.
    settings.store = {"127.0.0.1", 0};
    settings.environment.job_id = "job-1";
    settings.environment.base = {"PATH=/usr/bin:/bin", "RANK=99", "OWN=kept"};
    settings.open_files = {1000, 1000};
  }

  void run(Assignment assignment) {
    rendezvous_.emplace(loop, assignment);
    agent::Agent agent(loop, std::move(settings), keeper, *rendezvous_, *logger);
    const auto verdict = agent.run();
    REQUIRE(verdict);
  }
  OneRound& rendezvous() { return *rendezvous_; }

  Folder folder;
  boost::asio::io_context loop{1};
  agent::KeeperLink keeper{posix::open_pidfd(posix::own_pid()).value(),
                           posix::LeasePage::create().value(), posix::current_signal_settings()};
  std::shared_ptr<Logger> logger = make_stderr_logger(spdlog::level::off);
  agent::AgentSettings settings;

 private:
  std::optional<OneRound> rendezvous_;
};

std::map<std::string, std::string> environment_in(const fs::path& file) {
  std::map<std::string, std::string> environment;
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line))
    environment[line.substr(0, line.find('='))] = line.substr(line.find('=') + 1);
  return environment;
}

Assignment second_of_two() {
  Assignment assignment;
  assignment.round = {1, 1};
  assignment.world_size = 6;
  assignment.rank_offset = {4};
  assignment.local_world_size = 2;
  assignment.node_rank = {1};
  assignment.nodes = 2;
  assignment.restarts = 3;
  assignment.max_restarts = 5;
  assignment.role_rank_offset = 4;
  assignment.role_world_size = 6;
  assignment.master = {"10.77.0.10", 4711};
  return assignment;
}

Assignment alone(std::uint32_t workers) {
  Assignment assignment;
  assignment.round = {1, 1};
  assignment.world_size = workers;
  assignment.local_world_size = workers;
  return assignment;
}

/// Shell code that counts its parent's listening sockets into a file: the agent's own, whoever else
/// listens on this machine.
std::string count_listeners(const std::string& file) {
  return "for inode in $(ls -l /proc/$PPID/fd | sed -n 's/.*socket:\\[\\([0-9]*\\)\\]$/\\1/p'); do "
         "grep \" 0A .* $inode \" /proc/self/net/tcp; done | wc -l > " +
         file;
}

}  // namespace

TEST_CASE("the agent of node rank 1 of 2 gives its workers ranks 4 and 5 of 6, and hosts no store",
          "[agent][run]") {
  Fixture fixture;
  const auto file = [&](int worker) {
    return (fixture.folder / ("env" + std::to_string(worker))).string();
  };
  const auto listening = (fixture.folder / "listening").string();
  for (int worker = 0; worker < 2; ++worker) {
    fixture.settings.workers.push_back(
        shell("env > " + file(worker) + "; " + count_listeners(listening)));
  }
  fixture.run(second_of_two());
  CHECK(fixture.rendezvous().succeeded);

  for (int worker = 0; worker < 2; ++worker) {
    auto environment = environment_in(file(worker));
    for (const char* shells_own : {"PWD", "_", "SHLVL", "OLDPWD"}) environment.erase(shells_own);
    const std::map<std::string, std::string> expected = {
        {"PATH", "/usr/bin:/bin"},
        {"OWN", "kept"},
        {"RANK", std::to_string(4 + worker)},
        {"LOCAL_RANK", std::to_string(worker)},
        {"WORLD_SIZE", "6"},
        {"LOCAL_WORLD_SIZE", "2"},
        {"LOCAL_SIZE", "2"},
        {"GROUP_RANK", "1"},
        {"GROUP_WORLD_SIZE", "2"},
        {"ROLE_NAME", "default"},
        {"ROLE_RANK", std::to_string(4 + worker)},
        {"ROLE_WORLD_SIZE", "6"},
        {"MASTER_ADDR", "10.77.0.10"},
        {"MASTER_PORT", "4711"},
        {"TORCHELASTIC_RESTART_COUNT", "3"},
        {"TORCHELASTIC_MAX_RESTARTS", "5"},
        {"TORCHELASTIC_RUN_ID", "job-1"},
        {"TORCHELASTIC_USE_AGENT_STORE", "True"},
        {"TORCHELASTIC_ERROR_FILE", ""},
        {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
    };
    CHECK(environment == expected);
  }
  int listeners = -1;
  std::ifstream(listening) >> listeners;
  CHECK(listeners == 0);
}

TEST_CASE("the agent of node rank 0 has its store listening before any worker runs",
          "[agent][run]") {
  Fixture fixture;
  const auto file = (fixture.folder / "listening").string();
  const auto listening = (fixture.folder / "own").string();
  // The worker looks for a listener at the port that it was told of, and among the agent's own.
  fixture.settings.workers.push_back(
      shell("port=$(printf ':%04X' $MASTER_PORT); grep -c \"$port .* 0A \" /proc/self/net/tcp > " +
            file + "; " + count_listeners(listening)));
  auto assignment = alone(1);
  auto free = posix::bind_tcp({"127.0.0.1", 0}).value();
  const auto port = posix::to_endpoint(posix::local_address(free.get())).port;
  free.reset();
  fixture.settings.store.port = port;
  assignment.master = fixture.settings.store;
  fixture.run(assignment);
  CHECK(fixture.rendezvous().hello().store.port == port);
  int listeners = 0;
  std::ifstream(file) >> listeners;
  CHECK(listeners == 1);
  std::ifstream(listening) >> listeners;
  CHECK(listeners == 1);
}

TEST_CASE("a failure comes with the last lines of the worker's stderr, and the others are victims",
          "[agent][run]") {
  Fixture fixture;
  fixture.settings.workers.push_back(shell("sleep 1000"));
  fixture.settings.workers.push_back(shell("echo first >&2; echo ValueError: bad >&2; exit 7"));
  for (auto& worker : fixture.settings.workers) worker.err.console = false;
  fixture.run(alone(2));
  REQUIRE(fixture.rendezvous().failures.size() == 1);
  const auto& failure = fixture.rendezvous().failures[0];
  CHECK(failure.rank == Rank{1});
  CHECK(failure.status == ExitStatus{.code = 7});
  CHECK(failure.stderr_lines == std::vector<std::string>{"first", "ValueError: bad"});
  REQUIRE(fixture.rendezvous().victims.size() == 1);
  CHECK(fixture.rendezvous().victims[0].status == ExitStatus{.signal = SIGTERM});
  CHECK_FALSE(posix::has_children());
}

TEST_CASE("workers get the user's own limits, descriptors and signals", "[agent][run]") {
  Fixture fixture;
  const auto file = (fixture.folder / "state").string();
  fixture.settings.workers.push_back(
      shell("{ ulimit -n; ls /proc/self/fd | wc -l; ps -o sid= -p $$ | tr -d ' '; echo $$; "
            "grep -E 'SigBlk|SigIgn' /proc/self/status | cut -f2; } > " +
            file));
  fixture.keeper.user_signals.ignored = {SIGHUP};
  fixture.run(alone(1));
  std::ifstream in(file);
  int limit = 0, descriptors = 0, session = 0, pid = 0;
  std::string blocked, ignored;
  in >> limit >> descriptors >> session >> pid >> blocked >> ignored;
  CHECK(limit == 1000);
  CHECK(descriptors == 4);  // 0, 1, 2, and ls's own.
  CHECK(session == pid);
  CHECK(blocked == "0000000000000000");
  CHECK(ignored == "0000000000000001");
}

TEST_CASE("children that made sessions of their own are gone when the round is over",
          "[agent][run]") {
  Fixture fixture;
  fixture.settings.workers.push_back(shell("(setsid sh -c 'exec env -i sleep 1000' &) ; exit 3"));
  fixture.run(alone(1));
  CHECK_FALSE(posix::has_children());
}

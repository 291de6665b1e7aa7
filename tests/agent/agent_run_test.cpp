#include "agent/run/agent.hpp"
#include "base/posix/interfaces.hpp"
#include "base/posix/process_tree.hpp"
#include "base/posix/socket.hpp"
#include "one_round.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <catch2/catch.hpp>

using namespace muster;
using agent::alone;
using agent::Fixture;
using agent::OneRound;
using agent::shell;
namespace fs = std::filesystem;

namespace {

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
  assignment.secret = "the round's secret";
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
  auto assignment = second_of_two();
  assignment.master = fixture.host_master(assignment.secret);
  fixture.run(assignment);
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
        {"MASTER_ADDR", "127.0.0.1"},
        {"MASTER_PORT", std::to_string(assignment.master.port)},
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
  // The master's, which is in this process too, and the port that is reserved for a later round.
  CHECK(listeners == 2);
}

TEST_CASE("no worker starts before the master's store has heard the knock", "[agent][run]") {
  Fixture fixture;
  const auto mark = fixture.folder / "started";
  fixture.settings.workers.push_back(shell("touch " + mark.string()));
  auto assignment = second_of_two();
  auto bound = posix::bind_tcp({"127.0.0.1", 0}).value();  // Not listening yet.
  assignment.master = posix::to_endpoint(posix::local_address(bound.get()));
  std::optional<bool> early;  // nullopt: the round was over before the store listened.
  boost::asio::steady_timer later(fixture.loop, std::chrono::milliseconds(300));
  later.async_wait([&](const boost::system::error_code&) {
    early = fs::exists(mark);
    bound.reset();
    fixture.host_master(assignment.secret, assignment.master);
  });
  fixture.run(assignment);
  CHECK(early == false);
  CHECK(fs::exists(mark));
}

TEST_CASE("workers of several nodes are told the interface of the route, unless the user said one",
          "[agent][run]") {
  const auto addresses = posix::local_addresses().value();
  if (addresses.empty()) return;  // A machine that has loopback only.
  const auto interface = posix::interface_of(addresses.front());
  for (const bool is_users : {false, true}) {
    Fixture fixture;
    fixture.own_address = addresses.front();
    fixture.settings.environment.tells_nccl = true;
    if (is_users) fixture.settings.environment.base.emplace_back("GLOO_SOCKET_IFNAME=mine");
    const auto file = (fixture.folder / "env").string();
    fixture.settings.workers.push_back(shell("env > " + file));
    auto assignment = second_of_two();
    assignment.master = fixture.host_master(assignment.secret);
    fixture.run(assignment);
    auto environment = environment_in(file);
    CHECK(environment["GLOO_SOCKET_IFNAME"] == (is_users ? "mine" : interface));
    CHECK(environment["NCCL_SOCKET_IFNAME"] == interface);
  }
}

TEST_CASE("it is that of the route to the master, where the rendezvous is on this machine",
          "[agent][run]") {
  const auto addresses = posix::local_addresses().value();
  if (addresses.empty()) return;  // A machine that has loopback only.
  Fixture fixture;
  fixture.own_address = "127.0.0.1";
  const auto file = (fixture.folder / "env").string();
  fixture.settings.workers.push_back(shell("env > " + file));
  auto assignment = second_of_two();
  assignment.master = fixture.host_master(assignment.secret, {addresses.front(), 0});
  fixture.run(assignment);
  CHECK(environment_in(file)["GLOO_SOCKET_IFNAME"] == posix::interface_of(addresses.front()));
}

TEST_CASE("the preempt command's exit with 0 is a notice, its first line the reason",
          "[agent][run]") {
  Fixture fixture;
  fixture.settings.preempt.command = "sleep 0.1; echo the spot price rose; echo more";
  fixture.settings.preempt.left = std::chrono::seconds(30);
  const auto go_on = (fixture.folder / "go-on").string();
  ::mkfifo(go_on.c_str(), 0600);
  fixture.settings.workers.push_back(shell("read line < " + go_on));
  fixture.go_on_at_notice = go_on;
  fixture.run(alone(1));
  REQUIRE(fixture.rendezvous().notices.size() == 1);
  CHECK(fixture.rendezvous().notices[0].reason == "the spot price rose");
  CHECK(fixture.rendezvous().notices[0].left == std::chrono::seconds(30));
}

TEST_CASE("a watch that is gone does not run, although its time had come", "[agent][run]") {
  Fixture fixture;  // Without the guard this is a use after free, which AddressSanitizer finds.
  const auto mark = fixture.folder / "ran";
  std::optional<agent::PreemptWatch> watch;
  boost::asio::steady_timer sooner(fixture.loop, std::chrono::seconds(-1));
  bool has_destroyed = false;
  sooner.async_wait([&](const boost::system::error_code&) {  // Of the same turn of the loop.
    watch.reset();
    has_destroyed = true;
  });
  watch.emplace(
      fixture.loop,
      agent::PreemptWatch::Settings{
          .command = "touch " + mark.string(), .environment = {}, .signals = {}, .interval = {}},
      [](const std::string&) {}, *fixture.logger);
  fixture.loop.run();
  CHECK(has_destroyed);
  CHECK_FALSE(posix::has_children());
}

TEST_CASE("a preempt command that hangs holds up no round's end", "[agent][run]") {
  Fixture fixture;
  const auto began = (fixture.folder / "began").string();
  fixture.settings.preempt.command = "touch " + began + "; sleep 1000";
  fixture.settings.workers.push_back(
      shell("while ! test -e " + began + "; do sleep 0.01; done; exit 0"));
  const auto start = std::chrono::steady_clock::now();
  fixture.run(alone(1));
  CHECK(std::chrono::steady_clock::now() - start < fixture.settings.stopping.drain);
  CHECK(fixture.rendezvous().notices.empty());
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

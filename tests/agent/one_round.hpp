#pragma once

#include "agent/run/agent.hpp"
#include "base/posix/fork.hpp"
#include "base/posix/process_tree.hpp"
#include "base/posix/socket.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>

namespace muster::agent {

/// A rendezvous that gives one round, whatever Assignment the test likes, and then the verdict.
class OneRound : public rendezvous::Attendance {
 public:
  OneRound(boost::asio::io_context& loop, Assignment assignment)
      : loop_(loop), assignment_(assignment) {}

  void attend(Handlers handlers) override { handlers_ = std::move(handlers); }
  void report(Report report) override {
    if (const auto* hello = std::get_if<Hello>(&report)) {
      hello_ = *hello;
      order(assignment_);
    } else if (const auto* failed = std::get_if<Failed>(&report)) {
      failures.push_back(failed->failure);
      progress_before_failure = progress.size();
      order(Stop{assignment_.round, SIGTERM, "a worker failed"});
    } else if (const auto* told = std::get_if<Progress>(&report)) {
      progress.push_back(*told);
      if (is_leased()) handlers_.on_half_lease();
      if (!go_on_at_progress.empty()) std::ofstream(go_on_at_progress) << "go on\n";
      if (prepares) order(Prepare{assignment_.round, "the machine goes", {}});
    } else if (const auto* still = std::get_if<Saving>(&report)) {
      saving.push_back(still->left);
      if (still->left == 0) order(Stop{assignment_.round, SIGTERM, "all have saved"});
    } else if (const auto* notice = std::get_if<Notice>(&report)) {
      notices.push_back(*notice);
      if (!go_on_at_notice.empty()) std::ofstream(go_on_at_notice) << "go on\n";
    } else if (std::holds_alternative<Succeeded>(report)) {
      succeeded = true;
    } else if (const auto* empty = std::get_if<Empty>(&report)) {
      victims = empty->victims;
      order(Verdict{});
    } else if (std::holds_alternative<Leaving>(report)) {
      order(Stop{assignment_.round, SIGTERM, "the launcher was told to end"});
    } else if (std::holds_alternative<Stuck>(report)) {
      order(Verdict{});
    }
  }

  bool is_leased() const override { return leased; }
  std::string local_address() const override { return own_address; }
  void say_farewell(const std::string& reason) override { farewells.push_back(reason); }

  const Hello& hello() const { return hello_; }
  std::string own_address;  // Of our end of a connection that there is none of.
  bool leased = false;      // And at the first progress half of the lease is over.
  bool prepares = false;    // Asks the workers to save at any progress, and stops when they have.
  std::vector<std::uint32_t> saving;
  std::string go_on_at_notice;
  std::string go_on_at_progress;
  std::vector<Notice> notices;
  std::vector<Progress> progress;
  std::size_t progress_before_failure = 0;
  bool succeeded = false;
  std::vector<std::string> farewells;
  std::vector<WorkerFailure> failures;
  std::vector<Victim> victims;

 private:
  void order(Order order) {
    boost::asio::post(loop_, [this, order = std::move(order)] { handlers_.on_order(order); });
  }

  boost::asio::io_context& loop_;
  Assignment assignment_;
  Hello hello_;
  Handlers handlers_;
};

class Folder {
 public:
  Folder() {
    auto name = (std::filesystem::temp_directory_path() / "agent_run_test.XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline WorkerPlan shell(const std::string& script) {
  return {.path = "/bin/sh", .argv = {"sh", "-c", script}, .out = {}, .err = {}};
}

/// A round of one node.
inline Assignment alone(std::uint32_t workers) {
  Assignment assignment;
  assignment.round = {1, 1};
  assignment.world_size = workers;
  assignment.local_world_size = workers;
  return assignment;
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
    rendezvous_->own_address = own_address;
    rendezvous_->leased = leased;
    rendezvous_->prepares = prepares;
    rendezvous_->go_on_at_notice = go_on_at_notice;
    rendezvous_->go_on_at_progress = go_on_at_progress;
    Agent agent(loop, std::move(settings), keeper, *rendezvous_, *logger);
    const auto outcome = agent.run();
    REQUIRE(outcome);
    CHECK(outcome->verdict);
  }

  /// The store of a master that is another node, and admits who knocks with `secret`.
  Endpoint host_master(const std::string& secret, const Endpoint& at = {"127.0.0.1", 0}) {
    store::ServerOptions options;
    options.door = {.is_open = false, .allowed = {}, .admitted = {}, .secret = secret};
    master_ = store::Server::start(loop.get_executor(), posix::bind_tcp(at).value(),
                                   std::move(options), *logger)
                  .value();
    return master_->endpoint();
  }
  OneRound& rendezvous() { return *rendezvous_; }

  Folder folder;
  boost::asio::io_context loop{1};
  KeeperLink keeper{posix::open_pidfd(posix::own_pid()).value(), posix::LeasePage::create().value(),
                    posix::current_signal_settings(), posix::SharedNote::create().value(),
                    posix::SharedNote::create().value()};
  std::shared_ptr<Logger> logger = make_stderr_logger(spdlog::level::off);
  AgentSettings settings;
  std::string own_address;
  bool leased = false;
  bool prepares = false;
  std::string go_on_at_notice;    // A FIFO that gets a line then; empty: none.
  std::string go_on_at_progress;  // Likewise.

 private:
  std::unique_ptr<store::Server> master_;
  std::optional<OneRound> rendezvous_;
};

}  // namespace muster::agent

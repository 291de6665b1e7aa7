#include "rendezvous/daemon/state_folder.hpp"

#include "base/posix/folder.hpp"
#include "rendezvous/core/rendezvous.hpp"
#include "rendezvous/daemon/state_writer.hpp"
#include "rendezvous/server/kept_verdict.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>

#include <boost/asio/executor_work_guard.hpp>
#include <catch2/catch.hpp>

using namespace muster;
using namespace muster::rendezvous;
using namespace std::chrono_literals;

namespace {

/// A folder that goes with the test.
class Folder {
 public:
  Folder() : path_(*posix::make_unique_folder("/tmp/muster-state-test-")) {}
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      found.push_back(entry.path().filename().string());
    }
    return found;
  }

  /// As if the record had been kept so long ago.
  void put(Duration age, const std::string& content, const std::string& end = "-1.record") const {
    const auto then = std::chrono::system_clock::now() - age;
    const auto instant =
        std::chrono::duration_cast<std::chrono::milliseconds>(then.time_since_epoch());
    std::ofstream(path_ + "/29400-" + std::to_string(instant.count()) + end) << content;
  }

 private:
  std::string path_;
};

Archive::Ended failed_job() {
  Archive::Ended ended;
  ended.view.id = "job\xff";
  ended.view.phase = "failed";
  ended.view.reason = "rank 2 failed";
  ended.view.attempt = 3;
  ended.view.restarts = 2;
  ended.view.settings.max_restarts = 2;
  ended.view.settings.max_nodes = 8;
  ended.view.verdict = Verdict{.exit_code = 7, .summary = "rank 2 failed", .cause = {}};
  ended.view.verdict->cause = WorkerFailure{.rank = {2}, .local_rank = {0}, .node_rank = {1}};
  ended.view.verdict->cause->status = ExitStatus{.code = 7};
  ended.view.verdict->cause->stderr_lines = {"one", "two"};
  ended.launch_tag = "slurm 12.0.1";
  ended.attended = {Incarnation{"a"}, Incarnation{"b"}};
  ended.last_round = RoundId{.epoch = 1ULL << 63U, .number = 9};
  return ended;
}

}  // namespace

TEST_CASE("a port that was served stays marked, another one is not", "[daemon][state]") {
  const Folder folder;
  {
    const auto state = StateFolder::open(folder.path() + "/made/on/the/way");
    REQUIRE(state);
    CHECK_FALSE(state->has_served(29400));
    REQUIRE(state->mark_served(29400));
  }
  const auto again = StateFolder::open(folder.path() + "/made/on/the/way");
  REQUIRE(again);
  CHECK(again->has_served(29400));
  CHECK_FALSE(again->has_served(29401));
}

TEST_CASE("what can't be written leaves nothing behind", "[daemon][state]") {
  const Folder folder;
  const auto state = StateFolder::open(folder.path());
  REQUIRE(state);
  std::filesystem::create_directories(folder.path() + "/29400.served/in the way");
  CHECK_FALSE(state->mark_served(29400));
  CHECK(folder.names() == std::vector<std::string>{"29400.served"});
}

TEST_CASE("a state folder that can't be written to is refused at once", "[daemon][state]") {
  const Folder folder;
  std::ofstream(folder.path() + "/file") << "x";
  CHECK_FALSE(StateFolder::open(folder.path() + "/file"));
  CHECK_FALSE(StateFolder::open(folder.path() + "/file/below"));
}

TEST_CASE("records come back oldest first, until they are too old", "[daemon][state]") {
  const Folder folder;
  auto state = StateFolder::open(folder.path());
  REQUIRE(state);
  folder.put(2h, "too old");
  folder.put(59min, "old");
  folder.put(-10min, "of a clock that was set back");
  folder.put(10min, "half", "-1.record.new");
  folder.put(2h, "half, by a writer that died", "-1.record.new");
  std::ofstream(folder.path() + "/5-x") << "no record";
  std::ofstream(folder.path() + "/29400-x.record") << "no record";
  std::ofstream(folder.path() + "/29400.record") << "no record";
  std::ofstream(folder.path() + "/x.record") << "no record";
  REQUIRE(state->keep(29400, "new"));
  REQUIRE(state->keep(29400, "newer"));
  REQUIRE(state->keep(29401, "of another server"));
  const auto records = state->records(29400, 1h);
  REQUIRE(records.size() == 4);
  CHECK(records[0].content == "old");
  CHECK(records[0].age >= 59min);
  for (const auto& record : records) CHECK(record.age >= 0s);
  REQUIRE(state->records(29401, 1h).size() == 1);
  CHECK(state->records(29401, 1h)[0].content == "of another server");
  state->forget(29400, 1h);
  // Two too old are gone; the trifles, what is being written, and five records are there.
  CHECK(folder.names().size() == 4 + 1 + 5);
  state->forget(29400, 30min);
  CHECK(state->records(29400, 2h).size() == 3);
  CHECK(std::filesystem::exists(folder.path() + "/5-x"));
}

TEST_CASE("of too many records the oldest are forgotten", "[daemon][state]") {
  const Folder folder;
  auto state = StateFolder::open(folder.path());
  REQUIRE(state);
  folder.put(30min, "oldest");
  for (std::size_t count = 1; count < StateFolder::kMostRecords; ++count) {
    folder.put(20min, "", "-" + std::to_string(count) + ".record");
  }
  REQUIRE(state->keep(29401, "of another server"));
  state->forget(29400, 1h);
  CHECK(state->records(29400, 1h).size() == StateFolder::kMostRecords);
  REQUIRE(state->keep(29400, "newest"));
  state->forget(29400, 1h);
  const auto records = state->records(29400, 1h);
  REQUIRE(records.size() == StateFolder::kMostRecords);
  CHECK(records.front().content != "oldest");
  CHECK(records.back().content == "newest");
  CHECK(state->records(29401, 1h).size() == 1);
}

TEST_CASE("a writer keeps all that it was given before it ends, and tells what it could not",
          "[daemon][state]") {
  const Folder folder;
  boost::asio::io_context loop;
  std::vector<std::string> failed;
  const auto state = StateFolder::open(folder.path() + "/state");
  REQUIRE(state);
  StateWriter writer(loop, *state, {.port = 29400, .oldest = 1h},
                     [&](const std::string& what, const Error&) { failed.push_back(what); });
  writer.keep("a", "one");
  writer.keep("b", "two");
  SECTION("well") {
    writer.finish();
    CHECK(failed.empty());
    const auto records = state->records(29400, 1h);
    REQUIRE(records.size() == 2);
    CHECK(records[0].content == "one");
    CHECK(records[1].content == "two");
  }
  SECTION("while the loop runs") {
    while (state->records(29400, 1h).size() < 2) loop.poll();
    std::filesystem::remove_all(folder.path() + "/state");
    writer.keep("c", "three");
    loop.restart();
    const auto work = boost::asio::make_work_guard(loop);
    while (failed.empty()) REQUIRE(loop.run_one_for(20s) == 1);
    CHECK(failed == std::vector<std::string>{"c"});
  }
  SECTION("in vain") {
    while (state->records(29400, 1h).size() < 2) loop.poll();
    std::filesystem::remove_all(folder.path() + "/state");
    writer.keep("c", "three");
    writer.finish();
    CHECK(failed == std::vector<std::string>{"c"});
  }
}

TEST_CASE("a verdict survives as bytes", "[daemon][state]") {
  const auto before = failed_job();
  const auto after = decode_kept(encode_kept(before));
  REQUIRE(after);
  CHECK(after->view.id == before.view.id);
  CHECK(after->view.phase == "failed");
  CHECK(after->view.reason == "rank 2 failed");
  CHECK(after->view.attempt == 3);
  CHECK(after->view.restarts == 2);
  CHECK(after->view.settings.max_restarts == 2);
  CHECK(after->view.settings.max_nodes == 8);
  CHECK(after->launch_tag == before.launch_tag);
  CHECK(after->attended == before.attended);
  CHECK(after->last_round == before.last_round);
  REQUIRE(after->view.verdict);
  CHECK(after->view.verdict->exit_code == 7);
  REQUIRE(after->view.verdict->cause);
  CHECK(after->view.verdict->cause->rank == Rank{2});
  CHECK(after->view.verdict->cause->status == before.view.verdict->cause->status);
  CHECK(after->view.verdict->cause->stderr_lines == std::vector<std::string>{"one", "two"});
}

TEST_CASE("bytes that are no verdict are refused", "[daemon][state]") {
  const auto whole = encode_kept(failed_job());
  CHECK_FALSE(decode_kept(""));
  CHECK_FALSE(decode_kept("garbage"));
  CHECK_FALSE(decode_kept(whole.substr(0, whole.size() / 2)));
  CHECK_FALSE(decode_kept(std::string(100, '\xff')));
}

TEST_CASE("a server tells a late node the verdict of the one before it, for an hour in all",
          "[daemon][state]") {
  const TimePoint start(100h);
  Rendezvous::Settings settings;
  settings.bound_at = start;
  settings.kept.push_back({.ended = failed_job(), .age = 50min});
  Rendezvous rendezvous(settings);
  REQUIRE(rendezvous.job(start, "job\xff"));
  CHECK(rendezvous.job(start, "job\xff")->verdict->exit_code == 7);

  Hello late;
  late.job = "job\xff";
  late.incarnation = Incarnation{"a"};
  late.name = "h0";
  const auto verdicts = [](const std::vector<Rendezvous::Action>& actions) {
    int told = 0;
    for (const auto& action : actions) {
      const auto* send = std::get_if<Rendezvous::Send>(&action);
      const auto* directive = send == nullptr ? nullptr : std::get_if<Directive>(&send->message);
      const auto* verdict =
          directive == nullptr ? nullptr : std::get_if<Verdict>(&directive->order);
      if (verdict != nullptr && verdict->exit_code == 7) ++told;
    }
    return told;
  };
  CHECK(verdicts(rendezvous.step(
            start + 1s, Rendezvous::Greeted{{1}, late, "127.0.0.1:1", "127.0.0.1:2"})) == 1);
  (void)rendezvous.step(start + 11min, Rendezvous::Ticked{});
  CHECK_FALSE(rendezvous.job(start + 11min, "job\xff"));
}

#include "agent/run/beacons.hpp"

#include "agent/run/private_folder.hpp"
#include "base/posix/boot_clock.hpp"
#include "tests/agent/one_round.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <catch2/catch.hpp>

using namespace muster;
using namespace muster::agent;
namespace fs = std::filesystem;

namespace {

std::string content(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

/// A fixture whose workers may have beacons, in a folder of its own.
struct WithBeacons : Fixture {
  WithBeacons() {
    fs::create_directory(root());
    settings.beacons.roots = {(folder / "missing").string(), root().string()};
  }
  fs::path root() const { return folder / "root"; }
};

/// Shell code that sets a word of the page.
std::string put(int at, char value) {
  return "printf '\\0" + std::to_string(value / 8) + std::to_string(value % 8) +
         "' | dd of=\"$MUSTER_BEACON\" bs=1 seek=" + std::to_string(at) +
         " conv=notrunc 2>/dev/null; ";
}

/// The same, that tells a step as a worker would.
std::string tell_step(char step) { return put(136, step) + put(128, 1); }

/// Shell code: the value of one word of the page.
std::string word(int at) {
  return "$(od -An -tu8 -j" + std::to_string(at) + " -N8 \"$MUSTER_BEACON\")";
}

}  // namespace

TEST_CASE("what a worker reached is reported before its failure, and with it", "[agent][beacon]") {
  WithBeacons fixture;
  fixture.settings.workers.push_back(shell(tell_step(9) + "exit 3"));
  fixture.run(alone(1));
  const auto& rendezvous = fixture.rendezvous();
  REQUIRE(rendezvous.failures.size() == 1);
  CHECK(rendezvous.failures[0].step == 9);
  REQUIRE(rendezvous.progress.size() == 1);  // Once: at the Stop nothing had changed.
  CHECK(rendezvous.progress_before_failure == 1);
  REQUIRE(rendezvous.progress[0].workers.size() == 1);
  CHECK(rendezvous.progress[0].workers[0].step == 9);
}

TEST_CASE("a worker that says nothing is not reported about", "[agent][beacon]") {
  WithBeacons fixture;
  fixture.settings.workers.push_back(shell("exit 3"));
  fixture.run(alone(1));
  CHECK(fixture.rendezvous().progress.empty());
  REQUIRE(fixture.rendezvous().failures.size() == 1);
  CHECK_FALSE(fixture.rendezvous().failures[0].step);
}

TEST_CASE("what a worker says while it runs is reported within seconds", "[agent][beacon]") {
  WithBeacons fixture;
  const auto go_on = (fixture.folder / "go-on").string();
  ::mkfifo(go_on.c_str(), 0600);
  fixture.go_on_at_progress = go_on;
  fixture.settings.workers.push_back(shell(tell_step(7) + "read line < " + go_on));
  fixture.run(alone(1));
  CHECK(fixture.rendezvous().succeeded);
  REQUIRE(fixture.rendezvous().progress.size() == 1);
  CHECK(fixture.rendezvous().progress[0].workers[0].step == 7);
}

TEST_CASE("a worker is told when its lease will end", "[agent][beacon]") {
  WithBeacons fixture;
  fixture.leased = true;
  fixture.keeper.page.renew(posix::boot_now() + std::chrono::hours(1));
  const auto ends = fixture.keeper.page.lease_ends()->time_since_epoch().count();
  fixture.settings.workers.push_back(shell(tell_step(7) + "until [ " + word(72) +
                                           " -gt 0 ]; do sleep 0.01; done; [ " + word(72) +
                                           " -eq " + std::to_string(ends) + " ]"));
  fixture.run(alone(1));
  CHECK(fixture.rendezvous().succeeded);
}

TEST_CASE("a worker that saves as it was asked and leaves at once has saved, not finished",
          "[agent][beacon]") {
  WithBeacons fixture;
  fixture.prepares = true;
  fixture.settings.workers.push_back(shell(put(160, 1) + tell_step(7) + "until [ " + word(64) +
                                           " -gt 0 ]; do sleep 0.01; done; " + put(144, 1)));
  fixture.run(alone(1));
  CHECK_FALSE(fixture.rendezvous().succeeded);
  REQUIRE_FALSE(fixture.rendezvous().saving.empty());
  CHECK(fixture.rendezvous().saving.front() == 1);
  CHECK(fixture.rendezvous().saving.back() == 0);
  CHECK(fixture.rendezvous().failures.empty());
}

TEST_CASE("a worker that is stopped finds on its page that the round is over", "[agent][beacon]") {
  WithBeacons fixture;
  const auto ready = (fixture.folder / "ready").string();
  ::mkfifo(ready.c_str(), 0600);
  const auto file = fixture.folder / "over";
  fixture.settings.workers.push_back(shell("read line < " + ready + "; exit 3"));
  fixture.settings.workers.push_back(
      shell("trap 'echo " + word(96) + " > " + file.string() + "; exit 0' TERM; echo " + word(96) +
            " > " + file.string() + ".before; echo go > " + ready + "; sleep 1000 & wait"));
  fixture.run(alone(2));
  CHECK(content(file.string() + ".before") == "0\n");
  CHECK(content(file) == "1\n");
}

TEST_CASE("where no folder can be made the workers run without beacons", "[agent][beacon]") {
  WithBeacons fixture;
  fixture.settings.beacons.roots.pop_back();
  const auto file = fixture.folder / "env";
  fixture.settings.workers.push_back(shell("env > " + file.string()));
  fixture.run(alone(1));
  CHECK(fixture.rendezvous().succeeded);
  CHECK(content(file).find("MUSTER_BEACON") == std::string::npos);
  CHECK(content(file).find("PYTHONPATH") == std::string::npos);
}

TEST_CASE("Python finds the module behind the user's own paths, the hook before them",
          "[agent][beacon]") {
  for (const bool tracks : {false, true}) {
    WithBeacons fixture;
    fixture.settings.environment.base.emplace_back("PYTHONPATH=/a:/b");
    fixture.settings.environment.tracks_steps = fixture.settings.beacons.tracks_steps = tracks;
    const auto file = fixture.folder / "path";
    fixture.settings.workers.push_back(shell(
        "printf %s \"$PYTHONPATH\" > " + file.string() + "; p=$(dirname \"$MUSTER_BEACON\");" +
        "test -e \"$p/python/muster/beacon.py\" && test " + (tracks ? "" : "! ") +
        "-e \"$p/python/sitecustomize.py\""));
    fixture.run(alone(1));
    CHECK(fixture.rendezvous().succeeded);
    const auto path = content(file);
    CHECK(path.starts_with("/a:/b:" + fixture.root().string()) == !tracks);
    CHECK((path.starts_with(fixture.root().string()) && path.ends_with(":/a:/b")) == tracks);
    CHECK(entries(fixture.root()) == 0);  // All of it is gone.
  }
}

TEST_CASE("a private folder is its owner's, is named for the keeper, and goes with its object",
          "[agent][beacon]") {
  Folder folder;
  const auto note = posix::SharedNote::create().value();
  const std::vector<std::string> roots{(folder / "missing").string(), (folder / "").string()};
  {
    const auto made = PrivateFolder::create(roots, note).value();
    CHECK(note.read() == made.path());
    CHECK(fs::status(made.path()).permissions() == fs::perms::owner_all);
    std::ofstream(made.path() + "/file") << "content";
  }
  CHECK(entries(folder / "") == 0);
  CHECK(note.read().empty());
  remove_private_folder(note);  // The keeper finds nothing to do.

  const auto fails = PrivateFolder::create(std::span(roots).first(1), note);
  REQUIRE_FALSE(fails);
  CHECK(fails.error().message.find("missing") != std::string::npos);
}

TEST_CASE("the keeper removes the folder of an agent that has died", "[agent][beacon]") {
  Folder folder;
  const auto note = posix::SharedNote::create().value();
  const auto left = folder / "left";
  fs::create_directories(left / "python" / "muster");
  REQUIRE(note.write(left.string()));
  remove_private_folder(note);
  CHECK_FALSE(fs::exists(left));
}

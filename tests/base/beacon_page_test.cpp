#include "base/posix/beacon_page.hpp"

#include "base/posix/boot_clock.hpp"
#include "worker_sdk/include/muster/beacon.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

using namespace muster;
using namespace std::chrono_literals;

namespace {

/// A page in a folder of its own, which the environment of this process names.
struct Shared {
  Shared() {
    char name[] = "/tmp/muster-beacon-test-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    folder = name;
    path = folder + "/0";
    page.emplace(posix::BeaconPage::create(path, {}).value());
    ::setenv("MUSTER_BEACON", path.c_str(), 1);
  }
  ~Shared() {
    ::unsetenv("MUSTER_BEACON");
    page.reset();
    ::rmdir(folder.c_str());
  }

  /// As a worker that goes wild.
  void scribble(const std::string& bytes, off_t at) const {
    const posix::Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    REQUIRE(::pwrite(file.get(), bytes.data(), bytes.size(), at) ==
            static_cast<ssize_t>(bytes.size()));
  }

  std::string folder;
  std::string path;
  std::optional<posix::BeaconPage> page;
};

/// What a child process that is forked now returns.
template <class Act>
int in_child(Act act) {
  const auto child = ::fork();
  if (child == 0) ::_exit(act());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("what a worker says by its header is what the agent reads", "[base][beacon]") {
  Shared shared;
  CHECK_FALSE(shared.page->read());
  const auto before = posix::boot_now();
  Beacon beacon;
  REQUIRE(beacon.is_there());
  beacon.step(41);
  beacon.step();
  beacon.phase("train");
  beacon.saved();
  auto said = shared.page->read();
  REQUIRE(said);
  CHECK(said->step == 42);
  CHECK(said->saves == 1);
  CHECK(said->phase == "train");
  CHECK(said->at >= before);
  CHECK(said->at <= posix::boot_now());
  CHECK_FALSE(said->heeds_requests);
  beacon.phase(std::string(100, 'x'));
  CHECK_FALSE(beacon.checkpoint_requested());
  said = shared.page->read();
  REQUIRE(said);
  CHECK(said->phase == std::string(64, 'x'));
  CHECK(said->heeds_requests);
}

TEST_CASE("what the agent says is what the worker hears", "[base][beacon]") {
  Shared shared;
  Beacon beacon;
  beacon::AgentWords words;
  CHECK_FALSE(beacon.leaving());
  CHECK_FALSE(beacon.round_over());
  CHECK_FALSE(beacon.lease_running_out());
  CHECK(beacon.seconds_left() < 0);

  words.save_requests = 1;
  words.leaving = 1;
  words.leaves_at = (posix::boot_now() + 1h).time_since_epoch().count();
  words.lease_ends = words.leaves_at;
  words.round_over = 1;
  shared.page->write(words);
  CHECK(beacon.leaving());
  CHECK(beacon.round_over());
  CHECK(beacon.lease_running_out());
  CHECK(beacon.seconds_left() > 1000);
  CHECK(beacon.checkpoint_requested());
  beacon.saved();
  CHECK_FALSE(beacon.checkpoint_requested());

  // The server was heard of after all: the instant is over, and the worker lives.
  words.lease_ends = posix::boot_now().time_since_epoch().count();
  shared.page->write(words);
  CHECK_FALSE(beacon.lease_running_out());
}

TEST_CASE("a page belongs to the process that uses it first, while it lives", "[base][beacon]") {
  Shared shared;
  // One that is over by now has no claim any more.
  CHECK(in_child([] { return Beacon().is_there() ? 0 : 1; }) == 0);
  Beacon beacon;
  beacon.step(7);
  CHECK(in_child([&beacon] {
          beacon.step(8);  // Inherited by fork.
          Beacon own;
          own.step(9);
          return own.is_there() || beacon.is_there() ? 1 : 0;
        }) == 0);
  const auto said = shared.page->read();
  REQUIRE(said);
  CHECK(said->step == 7);
}

TEST_CASE("outside muster a beacon says nothing and hears nothing", "[base][beacon]") {
  ::unsetenv("MUSTER_BEACON");
  Beacon beacon;
  CHECK_FALSE(beacon.is_there());
  beacon.step(1);
  beacon.phase("train");
  beacon.saved();
  CHECK_FALSE(beacon.checkpoint_requested());
}

TEST_CASE("no bytes that a worker writes do more than spoil what it says", "[base][beacon]") {
  Shared shared;
  SECTION("all ones") {
    shared.scribble(std::string(beacon::kSize, '\xff'), 0);
    const auto said = shared.page->read();
    REQUIRE(said);
    CHECK(said->phase == std::string(64, '\xff'));
    CHECK(said->at.time_since_epoch() == 0ns);
  }
  SECTION("a heartbeat in the far future") {
    shared.scribble(std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8), 152);
    shared.scribble("\x01", 128);
    const auto said = shared.page->read();
    REQUIRE(said);
    CHECK(said->at <= posix::boot_now());
  }
  SECTION("the file is cut short") {
    REQUIRE(::truncate(shared.path.c_str(), 100) == 0);
    CHECK_FALSE(shared.page->read());
    shared.page->write({});
  }
  SECTION("the file is gone") {
    REQUIRE(::unlink(shared.path.c_str()) == 0);
    CHECK_FALSE(shared.page->read());
  }
}

TEST_CASE("a page is a new file, private, and goes with its object", "[base][beacon]") {
  Shared shared;
  struct stat status{};
  REQUIRE(::stat(shared.path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777U) == 0600);
  CHECK(status.st_size == beacon::kSize);
  CHECK_FALSE(posix::BeaconPage::create(shared.path, {}));
  shared.page.reset();
  CHECK(::stat(shared.path.c_str(), &status) != 0);
}

#include "base/posix/fd.hpp"
#include "base/posix/folder.hpp"
#include "rendezvous/server/local_server_file.hpp"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/file.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>

using namespace muster;
using namespace muster::rendezvous;

namespace {

/// A folder that goes with the test, with a private one in it.
class Folder {
 public:
  Folder() : path_(*posix::make_unique_folder("/tmp/muster-local-test-")) {
    std::filesystem::create_directory(place());
    ::chmod(place().c_str(), 0700);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string place() const { return path_ + "/private"; }

 private:
  std::string path_;
};

const LocalServer kServer{.pid = 4711,
                          .program = "musterd",
                          .endpoint = {"127.0.0.1", 29400},
                          .token = "secret",
                          .job = {}};

/// As a program that looks at the file holds it.
posix::Fd looked_at(const std::string& path) {
  posix::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(::flock(file.get(), LOCK_SH | LOCK_NB) == 0);
  return file;
}

}  // namespace

TEST_CASE("a server's file tells where it is for as long as it runs", "[local]") {
  const Folder folder;
  {
    const auto file = LocalServerFile::create(folder.place(), kServer);
    REQUIRE(file);
    const auto servers = local_servers({folder.place()});
    REQUIRE(servers.found.size() == 1);
    CHECK(servers.found[0].endpoint == kServer.endpoint);
    CHECK(servers.found[0].token == "secret");
    CHECK(servers.passed_over.empty());
  }
  CHECK(local_servers({folder.place()}).found.empty());
}

TEST_CASE("who looks at a file is not taken for its server", "[local]") {
  const Folder folder;
  const auto left = folder.place() + "/7.server";
  std::ofstream(left) << "endpoint 127.0.0.1:1\n";
  {
    const auto other = looked_at(left);
    CHECK(local_servers({folder.place()}).found.empty());
  }
  CHECK_FALSE(std::filesystem::exists(left));
}

TEST_CASE("a folder that others can enter hides no server elsewhere", "[local]") {
  const Folder folder;
  const Folder open;
  ::chmod(open.place().c_str(), 0755);
  const auto file = LocalServerFile::create(folder.place(), kServer);
  REQUIRE(file);
  CHECK_FALSE(LocalServerFile::create(open.place(), kServer));
  const auto servers = local_servers({open.place(), folder.place(), open.place() + "/missing"});
  CHECK(servers.found.size() == 1);
  REQUIRE(servers.passed_over.size() == 1);
  CHECK(servers.passed_over[0].find(open.place() + " has mode 0755") != std::string::npos);
}

#include "agent/run/shared_memory.hpp"

#include "base/posix/fd.hpp"
#include "tests/rendezvous/log_lines.hpp"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace muster::agent {
namespace {

/// In memory: the kernel can't tell everywhere else who has a file open.
struct Folder {
  Folder() {
    std::string name = "/dev/shm/test-XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() { std::filesystem::remove_all(path); }

  void make(const std::string& name) const { std::ofstream(path / name) << "something"; }
  [[nodiscard]] posix::Fd open(const std::string& name, int how) const {
    return posix::Fd(::open((path / name).c_str(), how | O_CLOEXEC));
  }
  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(path))
      all.insert(entry.path().filename());
    return all;
  }

  std::filesystem::path path;
};

struct Cleaned : Folder {
  std::shared_ptr<LogLines> log = std::make_shared<LogLines>();
  Logger logger{"test", log};
  SharedMemory memory{path, logger};
};

}  // namespace

TEST_CASE("what appeared in a round is removed, what was there before stays", "[agent][shm]") {
  Cleaned it;
  it.make("before");
  it.make("again");
  it.memory.begin_round();
  it.make("psm_1");
  it.make("muster-0-ours");
  std::filesystem::create_directory(it.path / "folder");
  std::filesystem::create_symlink("before", it.path / "link");
  std::filesystem::rename(it.path / "again", it.path / "moved");
  it.make("again");
  it.memory.end_round();
  CHECK(it.names() == std::set<std::string>{"before", "folder", "link", "muster-0-ours"});
  CHECK(it.log->take() == "info removed 3 files that the workers left in " + it.path.string() +
                              ": again moved psm_1\n");
}

TEST_CASE("what a process has open or mapped stays", "[agent][shm]") {
  Cleaned it;
  it.memory.begin_round();
  for (const auto* const name : {"read", "written", "mapped", "free"}) it.make(name);
  const auto reader = it.open("read", O_RDONLY);
  const auto writer = it.open("written", O_WRONLY);
  auto mapped = it.open("mapped", O_RDWR);
  void* const page = ::mmap(nullptr, 1, PROT_READ, MAP_SHARED, mapped.get(), 0);
  REQUIRE(page != MAP_FAILED);
  mapped.reset();
  it.memory.end_round();
  CHECK(it.names() == std::set<std::string>{"mapped", "read", "written"});
  CHECK(it.log->take().find("info 3 new files in " + it.path.string() + " stay") !=
        std::string::npos);
  ::munmap(page, 1);
}

TEST_CASE("nothing is removed where no round began", "[agent][shm]") {
  Cleaned it;
  it.make("other");
  it.memory.end_round();
  CHECK(it.names() == std::set<std::string>{"other"});
}

TEST_CASE("a folder that is not there is said, once a round", "[agent][shm]") {
  Folder folder;
  const auto log = std::make_shared<LogLines>();
  Logger logger{"test", log};
  SharedMemory memory(folder.path / "missing", logger);
  memory.begin_round();
  memory.end_round();
  CHECK(log->take() == "warning --clean-shm: read " + folder.path.string() +
                           "/missing: No such file or directory; what this round leaves there "
                           "stays\n");
}

}  // namespace muster::agent

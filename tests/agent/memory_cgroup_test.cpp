#include "agent/run/memory_cgroup.hpp"

#include "tests/launcher/temporary_folder.hpp"

#include <catch2/catch.hpp>

using namespace muster;
using namespace muster::agent;
using launcher::TemporaryFolder;

TEST_CASE("a memory cgroup of v2 tells its limit, its use and its kills", "[agent][memory]") {
  const TemporaryFolder folder;
  const posix::Cgroup group{.name = "/job", .folder = folder.path().string(), .v2 = true};
  CHECK(memory_kills(group) == 0);
  CHECK(!memory_limit(group));
  folder.write("memory.max", "max\n");
  CHECK(!memory_limit(group));
  folder.write("memory.max", "8000\n");
  folder.write("memory.current", "7000\n");
  folder.write("memory.stat", "anon 3000\nfile 4000\nactive_file 1000\ninactive_file 2000\n");
  folder.write("memory.events", "low 0\nhigh 0\nmax 7\noom 1\noom_kill 3\noom_group_kill 1\n");
  CHECK(memory_limit(group) == 8000);
  CHECK(memory_in_use(group) == 4000);
  CHECK(memory_kills(group) == 3);
}

TEST_CASE("a memory cgroup of v1 tells the same by other names", "[agent][memory]") {
  const TemporaryFolder folder;
  const posix::Cgroup group{.name = "/job", .folder = folder.path().string(), .v2 = false};
  folder.write("memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(!memory_limit(group));
  folder.write("memory.limit_in_bytes", "8000\n");
  folder.write("memory.usage_in_bytes", "100\n");
  folder.write("memory.stat", "cache 9\ninactive_file 1\ntotal_inactive_file 500\n");
  folder.write("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  CHECK(memory_limit(group) == 8000);
  CHECK(memory_in_use(group) == 0);  // The files are not read at one instant.
  CHECK(memory_kills(group) == 2);
}

TEST_CASE("the innermost cgroup with a limit is the node's", "[agent][memory]") {
  const TemporaryFolder folder;
  folder.write("pod/memory.max", "8000\n");
  folder.write("memory.max", "9000\n");
  const std::vector<posix::Cgroup> groups = {
      {.name = "/pod/main", .folder = folder.at("pod/main"), .v2 = true},
      {.name = "/pod", .folder = folder.at("pod"), .v2 = true},
      {.name = "/", .folder = folder.path().string(), .v2 = true}};
  CHECK(limited_memory_cgroup(groups).value().name == "/pod");
  CHECK(!limited_memory_cgroup({}));
}

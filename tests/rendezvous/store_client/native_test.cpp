// The example program examples/native, as users would run it, but for the launcher.

#include "tests/rendezvous/store/store_host.hpp"

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

namespace {

struct Outcome {
  int code;
  std::string output;
};

FILE* start(const std::string& variables) {
  const std::string command = "exec env -i " + variables + " " NATIVE_MEET " 2>&1";
  FILE* output = ::popen(command.c_str(), "r");
  REQUIRE(output != nullptr);
  return output;
}

Outcome finish(FILE* output) {
  std::string text;
  char line[512];
  while (std::fgets(line, sizeof line, output) != nullptr) text += line;
  return {::pclose(output), text};
}

}  // namespace

TEST_CASE("native workers meet, and agree on a sum", "[store_client][native]") {
  const StoreHost host;
  const int world_size = GENERATE(1, 4);
  std::vector<FILE*> workers;
  workers.reserve(static_cast<std::size_t>(world_size));
  for (int rank = 0; rank < world_size; ++rank) {
    workers.push_back(start("RANK=" + std::to_string(rank) +
                            " WORLD_SIZE=" + std::to_string(world_size) +
                            " MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(host.port())));
  }
  for (int rank = 0; rank < world_size; ++rank) {
    const auto [code, output] = finish(workers[static_cast<std::size_t>(rank)]);
    INFO(output);
    CHECK(code == 0);
    CHECK(output.starts_with("rank " + std::to_string(rank) + " of " + std::to_string(world_size) +
                             ": met "));
    CHECK(output.ends_with(", sum " + std::to_string(world_size * (world_size + 1) / 2) + "\n"));
  }
}

TEST_CASE("a native worker says what is wrong with its environment", "[store_client][native]") {
  const auto [variables, said] = GENERATE(table<std::string, std::string>(
      {{"", "native_meet: WORLD_SIZE is not set: start this program with muster\n"},
       {"WORLD_SIZE=2 RANK=2", "native_meet: RANK='2' is not a number of 0 to 1\n"},
       {"WORLD_SIZE=2 RANK=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=99999",
        "native_meet: MASTER_PORT='99999' is not a number of 1 to 65535\n"}}));
  const auto [code, output] = finish(start(variables));
  CHECK(code != 0);
  CHECK(output == said);
}

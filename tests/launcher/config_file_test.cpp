#include "launcher/config_file.hpp"

#include "tests/launcher/command_line.hpp"

#include <map>

namespace muster::launcher {
namespace {

std::string error_in(std::string_view text) {
  const auto parsed = parse_config(text, "job.toml");
  return parsed ? "(accepted)" : parsed.error().message;
}

/// A machine on which every file holds this.
Machine with_file(std::string text) {
  auto machine = machine_with(0);
  machine.read_file = [text](const std::string&) -> Result<std::string> { return text; };
  return machine;
}

}  // namespace

TEST_CASE("a file of flags is a small part of TOML", "[launcher][config]") {
  const auto parsed = parse_config(
      "# a comment\n"
      "\n"
      "[muster]  # the only table\n"
      "nnodes = \"2:4\"  # and another\n"
      "nproc_per_node=8\r\n"
      "\tmax-restarts\t=\t+3\n"
      "fold = true\n"
      "track-steps = false\n"
      "pass-local-rank = true\n"
      "role = 'a \\ # b'\n"
      "log-dir = \"/a \\\"b\\\"\\\\c\\t\"\n"
      "store-allow = [ \"10.0.0.0/8\", 'fd00::/8', ]\n"
      "forward-signals = []",
      "job.toml");
  REQUIRE(parsed);
  std::map<std::string, std::string> values;
  for (const auto& [name, given] : *parsed) values[name] = given.value;
  CHECK(values == std::map<std::string, std::string>{{"nnodes", "2:4"},
                                                     {"nproc-per-node", "8"},
                                                     {"max-restarts", "+3"},
                                                     {"fold", "1"},
                                                     {"track-steps", "0"},
                                                     {"pass-local-rank", "underscore"},
                                                     {"role", "a \\ # b"},
                                                     {"log-dir", "/a \"b\"\\c\t"},
                                                     {"store-allow", "10.0.0.0/8,fd00::/8"},
                                                     {"forward-signals", ""}});
  CHECK(parsed->at("nproc-per-node").origin == "job.toml:5: nproc_per_node");
}

TEST_CASE("what a file of flags may not have is named with its line", "[launcher][config]") {
  for (const auto& [text, error] : std::map<std::string, std::string>{
           {"\nnnodes 2", "job.toml:2: 'nnodes 2' is no line such as nnodes = 2"},
           {"= 2", "job.toml:1: '= 2' is no line such as nnodes = 2"},
           {"a.b = 2", "job.toml:1: 'a.b = 2' is no line such as nnodes = 2"},
           {"nodes = 2", "job.toml:1: no flag is named 'nodes'"},
           {"numa-binding = 'node'",
            "job.toml:1: numa-binding is a flag of torchrun that this version of muster does not "
            "have yet"},
           {"help = true", "job.toml:1: help can be given on the command line only"},
           {"explain = true", "job.toml:1: explain can be given on the command line only"},
           {"config = 'b'", "job.toml:1: config can be given on the command line only"},
           {"nnodes =", "job.toml:1: nnodes: the value is missing"},
           {"nnodes = # 2", "job.toml:1: nnodes: the value is missing"},
           {"nnodes = two", "job.toml:1: nnodes: 'two' is no value: put a text into quotes"},
           {"nnodes = 1.5", "job.toml:1: nnodes: '1.5' is no value: put a text into quotes"},
           {"nnodes = 02", "job.toml:1: nnodes: '02' is no value: put a text into quotes"},
           {"nnodes = 2 3", "job.toml:1: nnodes: something stands behind the value"},
           {"nnodes = '2", "job.toml:1: nnodes: the closing quote is missing"},
           {"nnodes = \"2\\",
            "job.toml:1: nnodes: a backslash before '': put the text into single "
            "quotes, or write two backslashes"},
           {"nnodes = '''2'''", "job.toml:1: nnodes: a text of several lines"},
           {"role = 'a\x01'", "job.toml:1: role: a control character in a text"},
           {"nnodes = true", "job.toml:1: nnodes takes one text in quotes, or an integer"},
           {"nnodes = ['2']", "job.toml:1: nnodes takes one text in quotes, or an integer"},
           {"fold = 1", "job.toml:1: fold is a switch: true or false"},
           {"store-allow = [1]",
            "job.toml:1: store-allow: an array has texts in quotes, and ends on its line"},
           {"store-allow = ['a' 'b']",
            "job.toml:1: store-allow: an array needs a comma, or its ']' on the same line"},
           {"nnodes = 2\nnnodes = 2", "job.toml:2: nnodes is given a second time"},
           {"nproc-per-node = 2\nnproc_per_node = 2",
            "job.toml:2: nproc_per_node is given a second time"},
           {"[other]",
            "job.toml:1: the only table that may be there is [muster], before all flags"},
           {"nnodes = 2\n[muster]",
            "job.toml:2: the only table that may be there is [muster], before all flags"},
           {"[muster]\n[muster]",
            "job.toml:2: the only table that may be there is [muster], before all flags"},
       }) {
    INFO(text);
    CHECK(error_in(text) == error);
  }
}

TEST_CASE("the command line goes before variables, a file, and the surroundings",
          "[launcher][config]") {
  const auto file = with_file("nproc-per-node = 2\nmax-restarts = 2\nrole = \"file\"\n");
  const auto options = options_of({"--config=job.toml", "--nproc-per-node=4", "x"},
                                  {{"PET_NPROC_PER_NODE", "3"},
                                   {"PET_MAX_RESTARTS", "3"},
                                   {"SLURM_JOB_ID", "1"},
                                   {"SLURM_STEP_ID", "0"},
                                   {"SLURM_STEP_NUM_TASKS", "1"},
                                   {"SLURM_GPUS_ON_NODE", "1"}},
                                  file);
  CHECK(options.nproc == 4);
  CHECK(options.job.max_restarts == 3);
  CHECK(options.role == "file");
  CHECK(options.given.at("role").origin == "job.toml:3: role");
  CHECK(options_of({"x"}, {{"MUSTER_CONFIG", "job.toml"}}, file).nproc == 2);
  CHECK(error_of({"--config=job.toml", "x"}, {}, with_file("nproc-per-node = 0")) ==
        "job.toml:1: nproc-per-node: '0' is not a number of workers: give an integer from 1 to "
        "65536");
}

TEST_CASE("a file of flags that can't be read is an error", "[launcher][config]") {
  auto machine = machine_with(0);
  machine.read_file = [](const std::string&) -> Result<std::string> {
    return fail(Errc::NotFound, "open job.toml: no such file");
  };
  CHECK(error_of({"--config=job.toml", "x"}, {}, machine) ==
        "--config: open job.toml: no such file");
  CHECK(options_of({"--config=", "x"}, {}, machine).nproc == 1);
}

}  // namespace muster::launcher

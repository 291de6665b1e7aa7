// A rendezvous server under a job of very many nodes: measured from outside, one line of JSON.
//
//   agents_load --address 127.0.0.1:29400 --server PID --agents 1000
//
// The agents are simulated, their connections are real: they join, rest, lose one of theirs by its
// farewell, take a newcomer in, and lose another while a spare stands by.

#include "tests/bench/measure.hpp"
#include "tests/bench/swarm.hpp"

#include <cstdio>
#include <exception>
#include <string>
#include <unistd.h>

#include <CLI/CLI.hpp>

namespace muster::bench {
namespace {

constexpr std::uint32_t kFewestAgents = 3;
constexpr std::uint32_t kMostAgents = 15'000;
constexpr double kMostSeconds = 600;

struct Arguments {
  std::string address;
  pid_t server_pid = 0;
  std::uint32_t agents = 1'000;
  double lease = 10;
  double rest = 5;
};

Duration seconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}

Result<Record> run(const Arguments& arguments) {
  const auto server = parse_endpoint(arguments.address, 0);
  if (!server) return pass(server.error());
  const std::uint32_t nodes = arguments.agents;
  auto swarm = Swarm::make({.server = *server,
                            .job = "bench-" + std::to_string(::getpid()),
                            .nodes = nodes,
                            .lease = seconds(arguments.lease)});
  if (!swarm) return pass(swarm.error());
  const auto empty_kib = status_kib(arguments.server_pid, "VmRSS");
  if (!empty_kib) return pass(empty_kib.error());
  const auto cpu_before = cpu_at_rest(arguments.server_pid);
  if (!cpu_before) return pass(cpu_before.error());

  const auto joined = swarm->join(nodes, nodes);
  if (!joined) return pass(joined.error());
  if (auto done = swarm->start(); !done) return pass(done.error());
  const auto cpu_joined = cpu_at_rest(arguments.server_pid);
  if (!cpu_joined) return pass(cpu_joined.error());
  const Swarm::Bytes middle = swarm->middle_bytes();
  const Swarm::Bytes most = swarm->most_bytes();

  const TimePoint rest_begin = monotonic_now();
  if (auto done = swarm->rest(seconds(arguments.rest)); !done) return pass(done.error());
  const auto cpu_rested = cpu_at_rest(arguments.server_pid);
  if (!cpu_rested) return pass(cpu_rested.error());
  const Duration rested = monotonic_now() - rest_begin;
  const auto full_kib = status_kib(arguments.server_pid, "VmRSS");
  if (!full_kib) return pass(full_kib.error());

  const auto parted = swarm->lose_one(nodes - 1);
  if (!parted) return pass(parted.error());
  if (auto done = swarm->start(); !done) return pass(done.error());
  const auto grown = swarm->join(1, nodes);
  if (!grown) return pass(grown.error());
  if (auto done = swarm->start(); !done) return pass(done.error());
  if (auto done = swarm->stand_by(); !done) return pass(done.error());
  const auto replaced = swarm->lose_one(nodes);
  if (!replaced) return pass(replaced.error());
  if (auto done = swarm->start(); !done) return pass(done.error());

  const double kib = *full_kib > *empty_kib ? static_cast<double>(*full_kib - *empty_kib) : 0;
  Record record;
  record.add("joined_ms", to_ms(joined->last))
      .add("join_server_ms", to_ms(*cpu_joined - *cpu_before))
      .add("kib_per_agent", kib / nodes)
      .add("rest_cpu_share", to_ms(*cpu_rested - *cpu_joined) / to_ms(rested))
      .add("first_stop_ms", to_ms(parted->stopped.first))
      .add("last_stop_ms", to_ms(parted->stopped.last))
      .add("smaller_ms", to_ms(parted->assigned.last))
      .add("grown_ms", to_ms(grown->last))
      .add("replaced_ms", to_ms(replaced->assigned.last))
      .add("agent_sent_bytes", middle.sent)
      .add("agent_received_bytes", middle.received)
      .add("most_received_bytes", most.received);
  return record;
}

int main_with(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{
      "Simulated agents for a rendezvous server: measures, checks, prints one line of JSON."};
  app.add_option("--address", arguments.address, "numeric host:port")->required();
  app.add_option("--server", arguments.server_pid, "process id of the server")->required();
  app.add_option("--agents", arguments.agents)->check(CLI::Range(kFewestAgents, kMostAgents));
  app.add_option("--lease", arguments.lease, "seconds")->check(CLI::Range(0.1, kMostSeconds));
  app.add_option("--rest", arguments.rest, "seconds at rest")->check(CLI::Range(0.1, kMostSeconds));
  CLI11_PARSE(app, argc, argv);
  const auto record = run(arguments);
  if (!record) {
    std::fprintf(stderr, "agents_load: %s\n", record.error().message.c_str());
    return 1;
  }
  std::printf("%s\n", record->text().c_str());
  return 0;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  try {
    return muster::bench::main_with(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "agents_load: %s\n", error.what());
    return 1;
  }
}

// Load for a c10d store, or for `epoll_floor`: one run, one line of JSON.
//
//   store_load run  --address 127.0.0.1:4711 --server 123 --operation get --connections 64 --depth
//   16 store_load crowd --address 127.0.0.1:4711 --server 123 --connections 5000 --wakes 5

#include "base/endpoint.hpp"
#include "tests/bench/crowd.hpp"
#include "tests/bench/load.hpp"
#include "tests/bench/measure.hpp"

#include <cstdio>
#include <exception>
#include <string>
#include <unistd.h>

#include <CLI/CLI.hpp>

namespace muster::bench {
namespace {

constexpr std::uint32_t kMostConnections = 100'000;
constexpr std::uint32_t kMostWakes = 1'000;
constexpr std::uint32_t kMostValueBytes = 8U << 20U;
constexpr std::uint32_t kMostDepth = 1'024;
constexpr double kMostSeconds = 60;

struct Arguments {
  std::string address;
  pid_t server_pid = 0;
  bool floor = false;
  std::uint32_t connections = 1;
  std::string operation = "get";
  std::uint32_t value_bytes = 16;
  std::uint32_t depth = 1;
  double warm_up = 0.02;
  double seconds = 0.2;
  std::uint64_t most_operations = 100'000'000;
  std::uint32_t wakes = 1;

  [[nodiscard]] Peer peer() const { return floor ? Peer::Floor : Peer::Store; }
};

Duration seconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}

Result<posix::SocketAddress> server_address(const Arguments& arguments) {
  const auto endpoint = parse_endpoint(arguments.address, 0);
  if (!endpoint) return pass(endpoint.error());
  return posix::numeric_address(*endpoint);
}

Result<Record> run(const Arguments& arguments) {
  const auto server = server_address(arguments);
  if (!server) return pass(server.error());
  const auto operation = parse_operation(arguments.operation);
  if (!operation) return pass(operation.error());
  auto figures = run_load({.server = *server,
                           .server_pid = arguments.server_pid,
                           .peer = arguments.peer(),
                           .workload = {*operation, arguments.value_bytes, arguments.depth},
                           .connections = arguments.connections,
                           .warm_up = seconds(arguments.warm_up),
                           .measured = seconds(arguments.seconds),
                           .most_operations = arguments.most_operations});
  if (!figures) return pass(figures.error());
  const auto operations = static_cast<double>(figures->operations);
  Record record;
  record.add("operations", figures->operations)
      .add("seconds", to_ms(figures->elapsed) / 1e3)
      .add("ops_per_s", operations * 1e3 / to_ms(figures->elapsed))
      .add("p50_us", quantile(figures->latencies, 0.5) / 1e3)
      .add("p99_us", quantile(figures->latencies, 0.99) / 1e3)
      .add("server_us_per_op", to_ms(figures->server_cpu) * 1e3 / operations)
      .add("load_us_per_op", to_ms(figures->own_cpu) * 1e3 / operations);
  return record;
}

Result<Record> crowd(const Arguments& arguments) {
  const auto server = server_address(arguments);
  if (!server) return pass(server.error());
  const auto before = status_kib(arguments.server_pid, "VmRSS");
  if (!before) return pass(before.error());
  Crowd members(*server, arguments.server_pid, arguments.peer());
  const auto opened = members.open(arguments.connections);
  if (!opened) return pass(opened.error());
  const auto after = status_kib(arguments.server_pid, "VmRSS");
  if (!after) return pass(after.error());
  Record record;
  record.add("open_ms", to_ms(opened->elapsed))
      .add("open_server_ms", to_ms(opened->server_cpu))
      .add("server_growth_kib", *after > *before ? *after - *before : 0);

  std::vector<double> first, half, all, server_ms;
  for (std::uint32_t i = 0; i < arguments.wakes; ++i) {
    const auto woken = members.wake();
    if (!woken) return pass(woken.error());
    first.push_back(to_ms(woken->first));
    half.push_back(to_ms(woken->half));
    all.push_back(to_ms(woken->all));
    server_ms.push_back(to_ms(woken->server_cpu));
  }
  record.add("wake_first_ms", first)
      .add("wake_half_ms", half)
      .add("wake_all_ms", all)
      .add("wake_server_ms", server_ms);
  return record;
}

int report(const Result<Record>& record) {
  if (!record) {
    std::fprintf(stderr, "store_load: %s\n", record.error().message.c_str());
    return 1;
  }
  std::printf("%s\n", record->text().c_str());
  return 0;
}

int main_with(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Load for a c10d store: measures, verifies every reply, prints one line of JSON."};
  app.require_subcommand(1);
  CLI::App* run_command = app.add_subcommand("run", "operations on a few connections");
  CLI::App* crowd_command = app.add_subcommand("crowd", "open very many connections, wake them");
  for (CLI::App* command : {run_command, crowd_command}) {
    command->add_option("--address", arguments.address, "numeric host:port")->required();
    command->add_option("--server", arguments.server_pid, "process id of the server")->required();
    command->add_flag("--floor", arguments.floor, "the server is epoll_floor");
    command->add_option("--connections", arguments.connections)
        ->check(CLI::Range(1U, kMostConnections));
  }
  run_command->add_option("--operation", arguments.operation);
  run_command->add_option("--value-bytes", arguments.value_bytes)
      ->check(CLI::Range(0U, kMostValueBytes));
  run_command->add_option("--depth", arguments.depth)->check(CLI::Range(1U, kMostDepth));
  run_command->add_option("--warm-up", arguments.warm_up)->check(CLI::Range(0.0, kMostSeconds));
  run_command->add_option("--seconds", arguments.seconds)->check(CLI::Range(0.001, kMostSeconds));
  run_command->add_option("--most-operations", arguments.most_operations);
  crowd_command->add_option("--wakes", arguments.wakes)->check(CLI::Range(0U, kMostWakes));
  CLI11_PARSE(app, argc, argv);
  return report(run_command->parsed() ? run(arguments) : crowd(arguments));
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  try {
    return muster::bench::main_with(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "store_load: %s\n", error.what());
    return 1;
  }
}

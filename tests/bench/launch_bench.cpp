// One measured run of a launcher with `stamp_worker`s; one line of JSON.
//
//   launch_bench start --workers 8 -- muster --nproc-per-node 8 stamp_worker exit
//   launch_bench restart --workers 4 -- muster --nproc-per-node 4 --max-restarts 1 stamp_worker
//   stay launch_bench memory --workers 8 -- muster --nproc-per-node 8 stamp_worker stay
//   launch_bench print --workers 1 --lines 2097152 -- muster --tee 3 stamp_worker print 2097152

#include "base/posix/process_tree.hpp"
#include "tests/bench/job.hpp"
#include "tests/bench/measure.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <signal.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <CLI/CLI.hpp>

namespace muster::bench {
namespace {

constexpr std::uint32_t kMostWorkers = 4'096;
constexpr std::uint32_t kMostMilliseconds = 600'000;

struct Arguments {
  std::uint32_t workers = 1;
  std::uint32_t patience_ms = 60'000;
  std::uint32_t settle_ms = 200;  ///< Between the last worker's start and what is done to the job.
  std::uint64_t lines = 0;
  std::vector<std::string> command;

  [[nodiscard]] Duration patience() const { return std::chrono::milliseconds(patience_ms); }
  [[nodiscard]] Duration settle() const { return std::chrono::milliseconds(settle_ms); }
};

double cpu_seconds(const rusage& used) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

TimePoint last_of(const std::vector<Stamp>& stamps) {
  return std::ranges::max_element(stamps, {}, &Stamp::began)->began;
}

TimePoint first_of(const std::vector<Stamp>& stamps) {
  return std::ranges::min_element(stamps, {}, &Stamp::began)->began;
}

Result<void> expect_success(const Job::End& end) {
  if (end.exit_code == 0) return {};
  return fail(Errc::Internal, "the launcher exited with " + std::to_string(end.exit_code));
}

/// Workers that exit at once: when they began, and when all was over.
Result<Record> start(const Arguments& arguments) {
  auto job = Job::start(arguments.command, Job::Output::Kept, arguments.patience());
  if (!job) return pass(job.error());
  const auto stamps = job->begun(arguments.workers, 0);
  if (!stamps) return pass(stamps.error());
  const auto end = job->ended();
  if (!end) return pass(end.error());
  if (auto done = expect_success(*end); !done) return pass(done.error());
  Record record;
  record.add("first_ms", to_ms(first_of(*stamps) - job->exec_at()))
      .add("last_ms", to_ms(last_of(*stamps) - job->exec_at()))
      .add("wall_ms", to_ms(end->at - job->exec_at()))
      .add("cpu_s", cpu_seconds(end->used))
      .add("largest_process_kib", static_cast<std::uint64_t>(end->used.ru_maxrss));
  return record;
}

/// One worker of a group at rest is killed: from the signal to the first instruction of the last
/// successor.
Result<Record> restart(const Arguments& arguments) {
  auto job = Job::start(arguments.command, Job::Output::Kept, arguments.patience());
  if (!job) return pass(job.error());
  const auto before = job->begun(arguments.workers, 0);
  if (!before) return pass(before.error());
  std::this_thread::sleep_for(arguments.settle());
  const Stamp& victim = before->back();
  const TimePoint death = monotonic_now();
  if (::kill(victim.pid, SIGKILL) != 0) {
    return fail(Errc::NotFound, "kill worker " + std::to_string(victim.pid) + ": it is gone");
  }
  const auto after = job->begun(arguments.workers, 1);
  if (!after) return pass(after.error());
  const auto end = job->ended();
  if (!end) return pass(end.error());
  if (auto done = expect_success(*end); !done) return pass(done.error());
  Record record;
  record.add("first_ms", to_ms(first_of(*after) - death))
      .add("last_ms", to_ms(last_of(*after) - death));
  return record;
}

/// Proportional set size: pages shared with others count in part.
std::uint64_t pss_kib(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/smaps_rollup");
  std::string word;
  while (file >> word) {
    if (std::uint64_t kib = 0; word == "Pss:" && file >> kib) return kib;
  }
  return 0;
}

/// All processes of the launcher itself, without its workers, while the workers are at rest.
Result<Record> memory(const Arguments& arguments) {
  auto job = Job::start(arguments.command, Job::Output::Kept, arguments.patience());
  if (!job) return pass(job.error());
  const auto stamps = job->begun(arguments.workers, 0);
  if (!stamps) return pass(stamps.error());
  std::this_thread::sleep_for(arguments.settle());
  std::uint64_t processes = 0, peak = 0, resident = 0, pss = 0;
  for (const int pid : posix::descendants()) {
    if (std::ranges::find(*stamps, pid, &Stamp::pid) != stamps->end()) continue;
    const auto high = status_kib(pid, "VmHWM");
    const auto now = status_kib(pid, "VmRSS");
    if (!high || !now) continue;  // Ended since it was listed.
    ++processes;
    peak += *high;
    resident += *now;
    pss += pss_kib(pid);
  }
  ::kill(job->pid(), SIGTERM);
  const auto end = job->ended();
  if (!end) return pass(end.error());
  Record record;
  record.add("processes", processes)
      .add("peak_kib", peak)
      .add("resident_kib", resident)
      .add("pss_kib", pss)
      .add("exit_code", static_cast<std::uint64_t>(end->exit_code));
  return record;
}

/// Workers print: from the first instruction to the last byte here. Every line must come.
Result<Record> print(const Arguments& arguments) {
  auto job = Job::start(arguments.command, Job::Output::Counted, arguments.patience());
  if (!job) return pass(job.error());
  const auto stamps = job->begun(arguments.workers, 0);
  if (!stamps) return pass(stamps.error());
  const auto end = job->ended();
  if (!end) return pass(end.error());
  if (auto done = expect_success(*end); !done) return pass(done.error());
  if (job->output_lines() != arguments.lines) {
    return fail(Errc::Internal, "of " + std::to_string(arguments.lines) + " lines " +
                                    std::to_string(job->output_lines()) + " came");
  }
  Record record;
  record.add("seconds", to_ms(job->last_output() - first_of(*stamps)) / 1e3)
      .add("lines", job->output_lines())
      .add("bytes", job->output_bytes())
      .add("cpu_s", cpu_seconds(end->used));
  return record;
}

int main_with(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Runs a launcher with stamping workers, measures it, prints one line of JSON."};
  app.require_subcommand(1);
  using Mode = Result<Record> (*)(const Arguments&);
  Mode mode = nullptr;
  const auto add_mode = [&](const char* name, const char* what, Mode function) {
    CLI::App* command = app.add_subcommand(name, what);
    command->add_option("--workers", arguments.workers)->check(CLI::Range(1U, kMostWorkers));
    command->add_option("--patience-ms", arguments.patience_ms)
        ->check(CLI::Range(1U, kMostMilliseconds));
    command->add_option("--settle-ms", arguments.settle_ms)
        ->check(CLI::Range(0U, kMostMilliseconds));
    command->add_option("--lines", arguments.lines, "that are printed, by all ranks together");
    command->add_option("command", arguments.command, "the launcher and its arguments")->required();
    command->callback([&mode, function] { mode = function; });
  };
  add_mode("start", "latency and wall time of a job whose workers exit at once", &start);
  add_mode("restart", "latency from a worker's death to its successors", &restart);
  add_mode("memory", "resident memory of the launcher while its workers stay", &memory);
  add_mode("print", "rate of what workers print", &print);
  CLI11_PARSE(app, argc, argv);
  const auto record = mode(arguments);
  if (!record) {
    std::fprintf(stderr, "launch_bench: %s: %s\n", arguments.command.front().c_str(),
                 record.error().message.c_str());
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
    std::fprintf(stderr, "launch_bench: %s\n", error.what());
    return 1;
  }
}

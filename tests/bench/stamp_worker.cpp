// A worker whose first act is to say when it began: what `launch_bench` lets a launcher start.
// Linked statically and without the C++ library, so that loading it costs as little as a process
// can.
//
//   stamp_worker exit           stamps and ends
//   stamp_worker stay           stamps and stays until a signal ends it; in a restarted group it
//   ends at once stamp_worker print LINES    stamps; rank 0 prints so many lines of 100 bytes
//   stamp_worker print-all LINES             stamps; every rank prints so many
//
// A stamp is one line in the pipe that $BENCH_STAMPS names: nanoseconds of CLOCK_MONOTONIC, process
// id, rank, and how often the group was restarted.

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

namespace {

constexpr size_t kLineBytes = 100;
constexpr size_t kLinesPerWrite = 640;

const char* variable(const char* name, const char* otherwise) {
  const char* value = getenv(name);
  return value != nullptr ? value : otherwise;
}

int stamp(const timespec& began, const char* restarts) {
  const char* path = getenv("BENCH_STAMPS");
  if (path == nullptr) return 0;
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  char line[160];
  const int size = snprintf(line, sizeof line, "%lld %d %s %s\n",
                            static_cast<long long>(began.tv_sec) * 1'000'000'000 + began.tv_nsec,
                            static_cast<int>(getpid()), variable("RANK", "-1"), restarts);
  const bool written = fd >= 0 && write(fd, line, static_cast<size_t>(size)) == size;
  if (!written) perror("stamp_worker: write to $BENCH_STAMPS");
  return written ? 0 : 1;
}

int print(long lines) {
  static char block[kLinesPerWrite * kLineBytes];
  memset(block, 'x', sizeof block);
  for (size_t end = kLineBytes; end <= sizeof block; end += kLineBytes) block[end - 1] = '\n';
  const size_t total = static_cast<size_t>(lines) * kLineBytes;
  for (size_t done = 0; done < total;) {
    const size_t within = done % kLineBytes;  // After a short write: go on inside the line.
    const size_t part = sizeof block - within;
    const ssize_t written =
        write(STDOUT_FILENO, block + within, total - done < part ? total - done : part);
    if (written <= 0) return 1;
    done += static_cast<size_t>(written);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  timespec began;
  clock_gettime(CLOCK_MONOTONIC, &began);
  const char* restarts = variable("TORCHELASTIC_RESTART_COUNT", "0");
  if (stamp(began, restarts) != 0) return 1;
  const char* act = argc > 1 ? argv[1] : "exit";
  if (strcmp(act, "stay") == 0 && strcmp(restarts, "0") == 0) {
    while (true) pause();
  }
  const bool first = strcmp(variable("RANK", "0"), "0") == 0;
  const bool prints = strcmp(act, "print-all") == 0 || (strcmp(act, "print") == 0 && first);
  if (prints && argc > 2) return print(atol(argv[2]));
  return 0;
}

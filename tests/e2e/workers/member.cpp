// A worker for tests with many nodes: holds its rank's lock, meets all others at the store of its
// round, says so, and stays until it is told to end.
//
//   member FOLDER
//
// FOLDER/locks/JOB.RANK     locked for its life; a second holder is a line in
// FOLDER/locks/violations FOLDER/log                gets a line for each event: "began", "met",
// "told", "signal" FOLDER/orders/end         ends every worker with exit code 0
// FOLDER/orders/JOB.RANK    ends that one worker with the exit code that is its content; it removes
// it
//
// It says that it got SIGUSR1, and goes on. With MEMBER_GRACE=N in its environment it also says
// that it got SIGTERM, and ends N milliseconds later.

#include "base/endpoint.hpp"
#include "rendezvous/store_client/store_client.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <set>
#include <string>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>
#include <vector>

using muster::store_client::Store;
using muster::store_client::StoreClient;
using std::chrono::steady_clock;

namespace {

constexpr std::chrono::seconds kMeetingPatience{30};
constexpr int kSecondHolder = 99;
constexpr int kCouldNotMeet = 3;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string folder;
std::string who;  // Goes into each line of the log.

/// One write: lines of several workers do not mix.
void append(const std::string& file, const std::string& line) {
  const int fd = ::open((folder + file).c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0 || ::write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    std::perror("member: write the log");
    std::exit(1);
  }
  ::close(fd);
}

void say(const std::string& event) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  append("/log",
         event + " at=" + std::to_string(now.tv_sec * 1'000'000'000LL + now.tv_nsec) + who + "\n");
}

std::string name_of_this_host() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return host;
}

/// The job's id without what can't be in a file's name.
std::string job_name() {
  std::string id = variable("TORCHELASTIC_RUN_ID");
  for (char& letter : id) {
    if (letter == '/') letter = '_';
  }
  return id;
}

void hold_the_rank(const std::string& rank) {
  const std::string path = folder + "/locks/" + job_name() + "." + rank;
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT, 0666);  // Inherited by whatever we start.
  if (fd >= 0 && ::flock(fd, LOCK_EX | LOCK_NB) == 0) return;
  append("/locks/violations", "a second holder of rank " + rank + ":" + who + "\n");
  std::exit(kSecondHolder);
}

template <class T>
T need(muster::Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "member: %s\n", result.error().message.c_str());
    say("alone");
    std::exit(kCouldNotMeet);
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// Says who we are in the store, and waits until everybody has. Returns a name of this meeting.
std::string meet(long rank, long world_size) {
  const muster::Endpoint master{variable("MASTER_ADDR"),
                                static_cast<std::uint16_t>(std::stoi(variable("MASTER_PORT")))};
  StoreClient client = need(StoreClient::connect(master, {.timeout = kMeetingPatience}));
  Store store = client.under("member");
  const std::string self = name_of_this_host() + "/" + std::to_string(::getpid());
  need(store.set(std::to_string(rank), self));
  std::vector<std::string> keys;
  for (long other = 0; other < world_size; ++other) keys.push_back(std::to_string(other));
  const auto names = need(store.multi_get(keys));
  if (std::set(names.begin(), names.end()).size() != names.size()) {
    append("/locks/violations", "one process has two ranks:" + who + "\n");
    std::exit(kSecondHolder);
  }
  return names.front();
}

/// Waits for an order or a signal. Returns the exit code.
int stay(const std::string& rank) {
  const int watch = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  const std::string orders = folder + "/orders";
  ::inotify_add_watch(watch, orders.c_str(), IN_CREATE | IN_MOVED_TO);
  sigset_t taken;
  ::sigemptyset(&taken);
  ::sigaddset(&taken, SIGUSR1);
  const std::string grace = variable("MEMBER_GRACE");
  if (!grace.empty()) ::sigaddset(&taken, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &taken, nullptr);
  const int signals = ::signalfd(-1, &taken, SFD_CLOEXEC);
  const std::string own = orders + "/" + job_name() + "." + rank;
  std::optional<steady_clock::time_point> ends;  // After a SIGTERM: the grace that it takes.
  while (true) {
    if (::access((orders + "/end").c_str(), F_OK) == 0) return 0;
    if (std::FILE* order = std::fopen(own.c_str(), "r")) {
      int code = 1;
      if (std::fscanf(order, "%d", &code) != 1) code = 1;
      std::fclose(order);
      ::unlink(own.c_str());
      return code;
    }
    int left = -1;
    if (ends) {
      const auto time = std::chrono::ceil<std::chrono::milliseconds>(*ends - steady_clock::now());
      if (time.count() <= 0) return 0;
      left = static_cast<int>(time.count());
    }
    pollfd watched[2] = {{watch, POLLIN, 0}, {signals, POLLIN, 0}};
    ::poll(watched, 2, left);
    if (watched[1].revents != 0) {
      signalfd_siginfo signal{};
      if (::read(signals, &signal, sizeof signal) != sizeof signal) return 1;
      say("signal" + std::to_string(signal.ssi_signo));
      if (signal.ssi_signo == SIGTERM && !ends)
        ends = steady_clock::now() + std::chrono::milliseconds(std::stoi(grace));
    }
    char events[4096];
    while (::read(watch, events, sizeof events) > 0) {
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  folder = argv[1];
  const std::string rank = variable("RANK");
  const std::string world = variable("WORLD_SIZE");
  who = " host=" + name_of_this_host() + " pid=" + std::to_string(::getpid()) +
        " agent=" + std::to_string(::getppid()) + " job=" + job_name() + " rank=" + rank +
        " world=" + world + " local=" + variable("LOCAL_RANK") +
        " local_world=" + variable("LOCAL_WORLD_SIZE") + " node=" + variable("GROUP_RANK") +
        " nodes=" + variable("GROUP_WORLD_SIZE") +
        " restarts=" + variable("TORCHELASTIC_RESTART_COUNT") +
        " master=" + variable("MASTER_ADDR") + " port=" + variable("MASTER_PORT") +
        " iface=" + variable("GLOO_SOCKET_IFNAME");
  say("began");
  hold_the_rank(rank);
  const std::string round = meet(std::stol(rank), std::stol(world));
  who += " round=" + round;
  say("met");
  const int code = stay(rank);
  say("told");
  return code;
}

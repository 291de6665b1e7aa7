#include "tests/bench/job.hpp"

#include "base/posix/process.hpp"
#include "base/posix/process_tree.hpp"
#include "tests/bench/measure.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <sstream>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster::bench {
namespace {

constexpr std::chrono::seconds kEndPatience{5};
constexpr std::size_t kQuotedBytes = 2'000;
constexpr std::size_t kReadBytes = 256 * 1024;

Result<void> check(bool fine, const std::string& act) {
  if (fine) return {};
  return pass(posix::errno_error(errno, act));
}

}  // namespace

Job::Folder::~Folder() {
  std::error_code ignored;
  if (!path.empty()) std::filesystem::remove_all(path, ignored);
}

Result<void> Job::prepare(Output output) {
  std::string folder = std::filesystem::temp_directory_path() / "muster-bench-XXXXXX";
  if (auto done = check(::mkdtemp(folder.data()) != nullptr, "make " + folder); !done) return done;
  folder_.path = folder;
  const std::string fifo = folder + "/stamps";
  if (auto done = check(::mkfifo(fifo.c_str(), 0600) == 0, "make " + fifo); !done) return done;
  // Open for writing too: a worker that opens and closes it is no end of file.
  stamps_pipe_ = posix::Fd(::open(fifo.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (auto done = check(bool(stamps_pipe_), "open " + fifo); !done) return done;
  const std::string kept = folder + "/output";
  output_file_ = posix::Fd(::open(kept.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (auto done = check(bool(output_file_), "open " + kept); !done) return done;
  if (output == Output::Counted) {
    auto pipe = posix::make_pipe();
    if (!pipe) return pass(pipe.error());
    output_pipe_ = std::move(pipe->reader);
    output_writer_ = std::move(pipe->writer);
    ::fcntl(output_pipe_.get(), F_SETFL, O_NONBLOCK);
  }
  void* page = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (auto done = check(page != MAP_FAILED, "map a shared page"); !done) return done;
  exec_at_ = static_cast<std::int64_t*>(page);
  return {};
}

Result<Job> Job::start(const std::vector<std::string>& command, Output output, Duration patience) {
  Job job;
  if (auto done = job.prepare(output); !done) return pass(done.error());
  job.give_up_ = monotonic_now() + patience;
  ::setenv("BENCH_STAMPS", (job.folder_.path + "/stamps").c_str(), 1);
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const auto& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix::adopt_orphans();

  job.pid_ = ::fork();
  if (auto done = check(job.pid_ >= 0, "fork"); !done) return pass(done.error());
  if (job.pid_ == 0) {
    const int file = job.output_file_.get();
    ::dup2(job.output_writer_ ? job.output_writer_.get() : file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
    ::setpgid(0, 0);
    *job.exec_at_ = monotonic_now().time_since_epoch().count();
    ::execvp(argv[0], argv.data());
    std::fprintf(stderr, "exec %s: %s\n", argv[0], posix::errno_text(errno).c_str());
    ::_exit(127);
  }
  job.output_writer_.reset();
  auto pidfd = posix::open_pidfd(job.pid_);
  if (!pidfd) return pass(pidfd.error());
  job.pidfd_ = std::move(*pidfd);
  return job;
}

Job::~Job() {
  if (folder_.path.empty()) return;  // Moved from.
  posix::end_descendants(kEndPatience);
}

TimePoint Job::exec_at() const { return TimePoint(Duration(*exec_at_)); }

Result<std::vector<Stamp>> Job::begun(std::size_t workers, std::uint32_t restarts) {
  std::vector<Stamp> wanted;
  while (true) {
    wanted.clear();
    std::ranges::copy_if(stamps_, std::back_inserter(wanted),
                         [&](const Stamp& stamp) { return stamp.restarts == restarts; });
    if (wanted.size() >= workers) return wanted;
    pollfd end{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
    const bool over = ::poll(&end, 1, 0) > 0;
    const std::size_t known = stamps_.size();
    if (over) take_stamps();
    if (over && stamps_.size() == known) {
      return fail(Errc::Unavailable, "the launcher ended after " + std::to_string(wanted.size()) +
                                         " of " + std::to_string(workers) +
                                         " workers had begun: " + quote_output());
    }
    if (over) continue;
    if (auto done = turn(); !done) return pass(done.error());
  }
}

Result<Job::End> Job::ended() {
  while (true) {
    pollfd end{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&end, 1, 0) > 0 && !output_pipe_) break;
    if (auto done = turn(); !done) return pass(done.error());
  }
  End end{.at = ended_at_};
  int status = 0;
  if (::wait4(pid_, &status, 0, &end.used) != pid_) {
    return pass(posix::errno_error(errno, "wait for the launcher"));
  }
  end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  take_stamps();
  return end;
}

Result<void> Job::turn() {
  pollfd watched[3] = {{stamps_pipe_.get(), POLLIN, 0},
                       {output_pipe_.get(), POLLIN, 0},
                       {ended_at_ == TimePoint{} ? pidfd_.get() : -1, POLLIN, 0}};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(give_up_ - monotonic_now());
  const int ready = left.count() <= 0 ? 0 : ::poll(watched, 3, static_cast<int>(left.count()));
  if (ready == 0) {
    return fail(Errc::Timeout, "the job is not where it should be in time: " +
                                   std::to_string(stamps_.size()) + " workers have begun, " +
                                   std::to_string(lines_) + " lines came; " + quote_output());
  }
  if (watched[2].revents != 0) ended_at_ = monotonic_now();
  if (watched[0].revents != 0) take_stamps();
  if (watched[1].revents != 0) take_output();
  return {};
}

void Job::take_stamps() {
  char buffer[4096];
  ssize_t received = 0;
  while ((received = ::read(stamps_pipe_.get(), buffer, sizeof buffer)) > 0) {
    unread_.append(buffer, static_cast<std::size_t>(received));
  }
  std::size_t end = 0;
  while ((end = unread_.find('\n')) != std::string::npos) {
    std::istringstream line(unread_.substr(0, end));
    unread_.erase(0, end + 1);
    Duration::rep began = 0;
    Stamp stamp;
    line >> began >> stamp.pid >> stamp.rank >> stamp.restarts;
    stamp.began = TimePoint(Duration(began));
    stamps_.push_back(stamp);
  }
}

void Job::take_output() {
  static char buffer[kReadBytes];
  const ssize_t received = ::read(output_pipe_.get(), buffer, sizeof buffer);
  if (received < 0) return;
  if (received == 0) {
    output_pipe_.reset();
    return;
  }
  last_output_ = monotonic_now();
  bytes_ += static_cast<std::uint64_t>(received);
  lines_ += static_cast<std::uint64_t>(std::count(buffer, buffer + received, '\n'));
}

std::string Job::quote_output() const {
  std::string text(kQuotedBytes, '\0');
  const off_t size = ::lseek(output_file_.get(), 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(kQuotedBytes));
  const ssize_t read = ::pread(output_file_.get(), text.data(), text.size(), from);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, read)));
  return text.empty() ? "it printed nothing" : "its last output:\n" + text;
}

}  // namespace muster::bench

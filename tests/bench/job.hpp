#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/posix/fd.hpp"

#include <cstdint>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace muster::bench {

/// What a `stamp_worker` said.
struct Stamp {
  TimePoint began;  ///< Of its first instructions.
  pid_t pid = 0;
  std::int32_t rank = -1;  ///< -1: whoever started it gave none.
  std::uint32_t restarts = 0;
};

/// One run of a launcher whose workers are `stamp_worker`s, from exec to the end of the process.
/// The tree below it ends with this object. One at a time.
class Job {
 public:
  enum class Output { Kept, Counted };

  /// Starts the launcher; its stdout and stderr go to a file, from which errors quote, or stdout
  /// through a pipe that is read and counted. All waiting of this job is over `patience` after
  /// this.
  [[nodiscard]] static Result<Job> start(const std::vector<std::string>& command, Output output,
                                         Duration patience);
  Job(Job&&) = default;
  Job& operator=(Job&&) = default;
  ~Job();

  /// Waits until so many workers of this attempt have begun. An error if the launcher ends before.
  [[nodiscard]] Result<std::vector<Stamp>> begun(std::size_t workers, std::uint32_t restarts);

  struct End {
    TimePoint at;
    int exit_code = 0;  ///< 128 + signal where a signal ended it.
    rusage used{};      ///< By it and all that it waited for.
  };
  /// Waits for the launcher's end, and with Output::Counted for the end of its output.
  [[nodiscard]] Result<End> ended();

  [[nodiscard]] TimePoint exec_at() const;
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const std::vector<Stamp>& stamps() const { return stamps_; }
  [[nodiscard]] std::uint64_t output_lines() const { return lines_; }
  [[nodiscard]] std::uint64_t output_bytes() const { return bytes_; }
  [[nodiscard]] TimePoint last_output() const { return last_output_; }

 private:
  struct Folder {  ///< Of the pipe and the output; goes with the job.
    std::string path;
    Folder() = default;
    Folder(Folder&& other) noexcept { std::swap(path, other.path); }
    Folder& operator=(Folder&& other) noexcept {
      std::swap(path, other.path);
      return *this;
    }
    ~Folder();
  };

  Job() = default;
  Result<void> prepare(Output output);
  Result<void> turn();  ///< Waits for the next thing to happen and takes it.
  void take_stamps();
  void take_output();
  [[nodiscard]] std::string quote_output() const;

  Folder folder_;
  posix::Fd stamps_pipe_;
  posix::Fd output_file_;
  posix::Fd output_pipe_;    ///< Reading end, while there is more to come.
  posix::Fd output_writer_;  ///< Ours until the child has it.
  posix::Fd pidfd_;
  pid_t pid_ = 0;
  std::int64_t* exec_at_ =
      nullptr;  ///< On a page shared with the child, which writes it right before exec.
  TimePoint give_up_{};
  TimePoint ended_at_{};  ///< When the end was seen.
  std::string unread_;
  std::vector<Stamp> stamps_;
  std::uint64_t lines_ = 0;
  std::uint64_t bytes_ = 0;
  TimePoint last_output_{};
};

}  // namespace muster::bench

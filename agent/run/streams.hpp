#pragma once

#include "agent/run/capture.hpp"
#include "agent/run/output.hpp"
#include "base/error.hpp"

#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

namespace muster::agent {

/// Where one stream of a worker goes. All false: nowhere.
struct StreamPlan {
  bool console = true;   ///< Our own stream of that name.
  bool by_line = false;  ///< There as lines, as the output's settings say; else as it comes.
  bool file = false;     ///< A file in the log folder.
};

/// The output of one running worker: what it was given as descriptors 1 and 2, and what the agent
/// reads of it.
class WorkerStreams {
 public:
  /// Opens files and pipes. `worker` counts the node's workers. `folder` ends in a slash; empty:
  /// no log folder, so no files.
  [[nodiscard]] static Result<WorkerStreams> open(boost::asio::io_context& loop, Output& output,
                                                  std::uint32_t worker, const StreamPlan& out,
                                                  const StreamPlan& err, const std::string& folder);

  [[nodiscard]] int out() const { return out_fd_; }
  [[nodiscard]] int err() const { return err_fd_; }
  /// After the worker was started: closes what only it needs.
  void close_child_ends() { child_ends_.clear(); }

  /// Takes what the worker has written so far.
  void drain();
  /// When the round is over: unfinished lines too.
  void finish();

  /// The last lines of its stderr, as far as they went through us or to a file.
  [[nodiscard]] std::vector<std::string> last_err_lines() const;
  /// The file of its stderr; empty: none.
  [[nodiscard]] const std::string& err_file() const { return err_file_; }

 private:
  Result<int> open_one(boost::asio::io_context& loop, Output& output, Output::Stream stream,
                       std::uint32_t worker, const StreamPlan& plan, const std::string& file);
  int keep(posix::Fd fd);

  int out_fd_ = 1;
  int err_fd_ = 2;
  std::vector<posix::Fd> child_ends_;
  std::unique_ptr<Capture> out_;
  std::unique_ptr<Capture> err_;
  std::string err_file_;
};

}  // namespace muster::agent

#pragma once

#include "agent/run/life.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/log/log.hpp"
#include "base/posix/epoll.hpp"
#include "base/posix/fd.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

namespace muster::agent {

/// Gives each of a node's workers a copy of our standard input, through a pipe: all of it, to the
/// end. One that has closed its pipe, or died, is done with. Of what a worker has not read yet
/// kBufferLimit is held; when others wait for more it may hold them up for kPatience, and then gets
/// no more, which is said. Workers that are started again get the rest: what none of those before
/// was given. Loop thread only.
class InputCopies {
 public:
  static constexpr std::size_t kBufferLimit = 1024 * 1024;
  static constexpr Duration kPatience = std::chrono::seconds(30);

  /// `fd` stays in blocking mode: it is the user's.
  InputCopies(boost::asio::io_context& loop, int fd, Logger& logger, Duration patience = kPatience);

  /// So many readers come, one by one; before that nothing is read. Those of the round before are
  /// gone.
  void begin_round(std::uint32_t readers);
  /// The end of a pipe that this worker reads.
  [[nodiscard]] Result<posix::Fd> add_reader(Rank rank);

 private:
  struct Reader {
    Reader(boost::asio::io_context& loop, Rank its_rank, std::uint64_t from)
        : rank(its_rank), out(loop), at(from) {}
    Rank rank;
    boost::asio::posix::stream_descriptor out;
    std::uint64_t at;  ///< How much of the input it was given.
    bool is_full = false;
    bool is_done = false;
  };

  [[nodiscard]] std::uint64_t end() const { return begin_ + held_.size(); }
  void read_more();
  void read_once();
  void feed(Reader& reader);
  void finish(Reader& reader);
  void wait_for_room(Reader& reader);
  void settle();
  void watch_for_stall();
  void drop_slowest();

  boost::asio::io_context& loop_;
  int fd_;
  Logger& logger_;
  Duration patience_;
  std::optional<posix::EpollSet> set_;  // None: a file, which is always readable.
  boost::asio::posix::stream_descriptor readable_;
  bool is_reading_ = false;
  bool has_ended_ = false;
  std::string held_;
  std::uint64_t begin_ = 0;     // How much of the input came before what is held.
  std::uint64_t furthest_ = 0;  // How much of it any reader was given.
  std::vector<std::unique_ptr<Reader>> readers_;
  std::uint32_t expected_ = 0;
  boost::asio::steady_timer stall_;
  bool is_stalled_ = false;
  std::optional<Life> round_;  // Of the handlers of its readers.
  Life life_;
};

}  // namespace muster::agent

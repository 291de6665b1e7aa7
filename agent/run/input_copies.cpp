#include "agent/run/input_copies.hpp"

#include "base/posix/stream.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>

namespace muster::agent {
namespace asio = boost::asio;

InputCopies::InputCopies(asio::io_context& loop, int fd, Logger& logger, Duration patience)
    : loop_(loop), fd_(fd), logger_(logger), patience_(patience), readable_(loop), stall_(loop) {
  constexpr std::uint64_t kOnlyMember = 0;
  // Asio would make the open file non-blocking, so it watches a set in which the file is.
  auto set = posix::EpollSet::make();
  if (!set || !set->add(fd_, EPOLLIN, kOnlyMember)) return;
  auto watched = posix::duplicate(set->descriptor());
  if (!watched) return;
  set_.emplace(std::move(*set));
  readable_.assign(watched->release());
}

void InputCopies::begin_round(std::uint32_t readers) {
  readers_.clear();
  round_.emplace();
  expected_ = readers;
  held_.erase(0, furthest_ - begin_);
  begin_ = furthest_;
  stall_.cancel();
  is_stalled_ = false;
}

Result<posix::Fd> InputCopies::add_reader(Rank rank) {
  auto pipe = posix::make_pipe();
  if (!pipe) return pass(pipe.error());
  readers_.push_back(std::make_unique<Reader>(loop_, rank, begin_));
  readers_.back()->out.assign(pipe->writer.release());
  readers_.back()->out.non_blocking(true);
  if (readers_.size() == expected_) {
    asio::post(loop_, round_->guard([this] {
      for (const auto& reader : readers_) feed(*reader);
      settle();
    }));
  }
  return std::move(pipe->reader);
}

void InputCopies::read_more() {
  const bool has_reader = std::any_of(readers_.begin(), readers_.end(),
                                      [](const auto& reader) { return !reader->is_done; });
  if (is_reading_ || has_ended_ || !has_reader || held_.size() >= kBufferLimit) return;
  is_reading_ = true;
  auto read = life_.guard([this](const boost::system::error_code& error) {
    is_reading_ = false;
    if (!error) read_once();
  });
  if (set_) {
    readable_.async_wait(asio::posix::stream_descriptor::wait_read, std::move(read));
  } else {
    asio::post(loop_, [read = std::move(read)]() mutable { read(boost::system::error_code()); });
  }
}

void InputCopies::read_once() {
  std::array<char, 64 * 1024> buffer;
  const auto got = posix::read_shared(fd_, buffer.data(), buffer.size());
  has_ended_ = got.end;
  held_.append(buffer.data(), got.size);
  for (const auto& reader : readers_) {
    if (!reader->is_full) feed(*reader);
  }
  settle();
}

/// Gives a reader what its pipe takes.
void InputCopies::feed(Reader& reader) {
  while (!reader.is_done && reader.at < end()) {
    const auto rest = std::string_view(held_).substr(reader.at - begin_);
    boost::system::error_code error;
    const auto size = reader.out.write_some(asio::buffer(rest), error);
    if (error == asio::error::would_block) return wait_for_room(reader);
    if (error) return finish(reader);  // It has closed its end.
    reader.at += size;
    furthest_ = std::max(furthest_, reader.at);
  }
  if (has_ended_) finish(reader);
}

void InputCopies::finish(Reader& reader) {
  boost::system::error_code ignored;
  (void)reader.out.close(ignored);
  reader.is_done = true;
}

void InputCopies::wait_for_room(Reader& reader) {
  reader.is_full = true;
  reader.out.async_wait(asio::posix::stream_descriptor::wait_write,
                        round_->guard([this, &reader](const boost::system::error_code& error) {
                          if (error || reader.is_done) return;
                          reader.is_full = false;
                          feed(reader);
                          settle();
                        }));
}

/// After any change: forgets what all have, reads on, and sees to it that nobody waits for ever.
void InputCopies::settle() {
  auto slowest = end();
  for (const auto& reader : readers_) {
    if (!reader->is_done) slowest = std::min(slowest, reader->at);
  }
  if (slowest > begin_) {
    held_.erase(0, slowest - begin_);
    begin_ = slowest;
    is_stalled_ = false;
    stall_.cancel();
  }
  read_more();
  watch_for_stall();
}

void InputCopies::watch_for_stall() {
  const bool is_awaited = std::any_of(readers_.begin(), readers_.end(), [this](const auto& reader) {
    return !reader->is_done && reader->at == end();
  });
  if (is_stalled_ || held_.size() < kBufferLimit || !is_awaited) return;
  is_stalled_ = true;
  stall_.expires_after(patience_);
  stall_.async_wait(round_->guard([this](const boost::system::error_code& error) {
    if (!error && is_stalled_) drop_slowest();
  }));
}

void InputCopies::drop_slowest() {
  is_stalled_ = false;
  for (const auto& reader : readers_) {
    if (reader->is_done || reader->at > begin_) continue;
    logger_.warn(
        "input lost: rank {} does not read its standard input, for which others have waited {} s; "
        "it gets no more of it",
        reader->rank.value, std::chrono::duration_cast<std::chrono::seconds>(patience_).count());
    finish(*reader);
  }
  settle();
}

}  // namespace muster::agent

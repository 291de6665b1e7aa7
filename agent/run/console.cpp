#include "agent/run/console.hpp"

#include "base/posix/stream.hpp"

#include <utility>

namespace muster::agent {
namespace asio = boost::asio;

Console::Console(asio::io_context& loop, int fd, std::string name, Logger& logger)
    : name_(std::move(name)), logger_(logger), how_(fd), room_wait_(loop) {
  auto copy = posix::duplicate(fd);
  lost_ = !copy;
  if (copy) out_ = std::move(*copy);
  posix::enlarge_pipe(fd, kPipeSize);
}

void Console::write(std::string_view bytes) {
  if (bytes.empty()) return;
  std::string end;
  open_line_.end(end);
  write_lines(end);
  write_lines(bytes);
}

void Console::write_lines(std::string_view bytes) {
  if (queue_.empty()) bytes.remove_prefix(write_now(bytes));
  if (lost_ || bytes.empty()) return;
  queued_ += bytes.size();
  queue_.emplace_back(bytes);
  if (!waiting_for_room_) wait_until_writable();
}

/// Writes while the kernel takes it without blocking; returns how much it took.
std::size_t Console::write_now(std::string_view bytes) {
  std::size_t taken = 0;
  while (!lost_ && taken < bytes.size()) {
    const auto result = how_.write(out_.get(), bytes.substr(taken));
    if (result.error != 0) drop(posix::errno_text(result.error));
    if (result.written == 0) break;
    taken += result.written;
  }
  return taken;
}

/// Writes what is queued. False: something is left.
bool Console::write_some() {
  while (!queue_.empty()) {
    const auto taken = write_now(std::string_view(queue_.front()).substr(front_written_));
    if (lost_) return true;
    queued_ -= taken;
    front_written_ += taken;
    if (front_written_ < queue_.front().size()) return false;
    queue_.pop_front();
    front_written_ = 0;
  }
  return true;
}

void Console::wait_until_writable() {
  constexpr std::uint64_t kOnlyMember = 0;
  if (!room_) {
    auto set = posix::EpollSet::make();
    auto watched = set ? posix::duplicate(set->descriptor()) : pass(set.error());
    if (!watched) return drop(watched.error().message);
    if (const auto added = set->add(out_.get(), 0, kOnlyMember); !added)
      return drop(added.error().message);
    room_ = std::make_unique<posix::EpollSet>(std::move(*set));
    room_wait_.assign(watched->release());
  }
  (void)room_->change(out_.get(), EPOLLOUT, kOnlyMember);
  waiting_for_room_ = true;
  room_wait_.async_wait(asio::posix::stream_descriptor::wait_read,
                        life_.guard([this](const boost::system::error_code& error) {
                          if (error == asio::error::operation_aborted) return;
                          waiting_for_room_ = false;
                          if (!write_some()) {
                            wait_until_writable();
                          } else {
                            (void)room_->change(out_.get(), 0, kOnlyMember);
                          }
                          if (congested()) return;
                          for (auto& then : std::exchange(waiting_, {})) then();
                        }));
}

void Console::drop(const std::string& why) {
  lost_ = true;
  queue_.clear();
  queued_ = 0;
  logger_.warn("output lost: {} can't be written any more ({}); the workers go on", name_, why);
}

void Console::flush(Duration patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!lost_ && !write_some()) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= Duration::zero() || !posix::wait_writable(out_.get(), left)) {
      logger_.warn("output lost: nobody read {}, {} bytes were left", name_, queued_);
      return;
    }
  }
}

}  // namespace muster::agent

#include "agent/run/console.hpp"

#include "base/posix/stream.hpp"

#include <utility>

namespace muster::agent {
namespace asio = boost::asio;
namespace {

/// Of the epoll set.
constexpr std::uint64_t kOnlyMember = 0;

}  // namespace

Console::Console(asio::io_context& loop, int fd, std::string name, Logger& logger,
                 Duration patience)
    : name_(std::move(name)),
      logger_(logger),
      patience_(patience),
      how_(fd),
      room_wait_(loop),
      patience_timer_(loop) {
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
  if (is_stalled_) return lose(bytes);
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
    if (front_written_ < queue_.front().size()) break;
    queue_.pop_front();
    front_written_ = 0;
  }
  if (is_stalled_ && !congested()) resume();
  return queue_.empty();
}

void Console::wait_until_writable() {
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
                          if (error != asio::error::operation_aborted) on_room();
                        }));
}

void Console::on_room() {
  const auto before = queued_;
  const bool all_written = write_some();
  waiting_for_room_ = false;
  if (!all_written) {
    wait_until_writable();
  } else {
    (void)room_->change(out_.get(), 0, kOnlyMember);
  }
  if (!congested()) {
    release_waiting();
  } else if (queued_ < before && !waiting_.empty()) {
    arm_patience();
  }
}

void Console::when_clear(std::function<void()> then) {
  if (waiting_.empty()) arm_patience();
  waiting_.push_back(std::move(then));
}

void Console::arm_patience() {
  patience_timer_.expires_after(patience_);
  patience_timer_.async_wait(life_.guard([this](const boost::system::error_code& error) {
    if (!error && holds_up()) stall();
  }));
}

void Console::release_waiting() {
  patience_timer_.cancel();
  for (auto& then : std::exchange(waiting_, {})) then();
}

void Console::stall() {
  is_stalled_ = true;
  cuts_line_ = !queue_.back().ends_with('\n');
  logger_.warn(
      "output lost: nobody has read {} for {} s; what the workers write there is dropped until "
      "somebody does",
      name_, std::chrono::duration<double>(patience_).count());
  release_waiting();
}

/// Whole lines: one that has not ended may be there as a whole when somebody reads again.
void Console::lose(std::string_view bytes) {
  begun_ += bytes;
  auto lost = begun_.rfind('\n') + 1;
  if (begun_.size() - lost > kLineRoom) lost = begun_.size();
  lost_bytes_ += lost;
  begun_.erase(0, lost);
}

void Console::resume() {
  is_stalled_ = false;
  auto begun = std::exchange(begun_, {});
  if (auto lost = std::exchange(lost_bytes_, 0); lost > 0) {
    if (cuts_line_) write_lines("\n");
    if (open_line_.is_open()) {  // Its owner begins it again.
      std::string ignored;
      open_line_.end(ignored);
      lost += std::exchange(begun, {}).size();
    }
    logger_.warn("output lost: {} bytes, while nobody read {}", lost, name_);
  }
  write_lines(begun);
}

void Console::drop(const std::string& why) {
  lost_ = true;
  is_stalled_ = false;
  queue_.clear();
  queued_ = 0;
  logger_.warn("output lost: {} can't be written any more ({}); the workers go on", name_, why);
}

void Console::flush(Duration patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!lost_ && !write_some()) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= Duration::zero() || !posix::wait_writable(out_.get(), left)) {
      logger_.warn("output lost: nobody read {}, {} bytes were left", name_,
                   queued_ + lost_bytes_ + begun_.size());
      return;
    }
  }
}

}  // namespace muster::agent

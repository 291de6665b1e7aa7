#include "agent/run/parent_watch.hpp"

#include "base/posix/fork.hpp"
#include "base/posix/process.hpp"
#include "base/posix/process_tree.hpp"

#include <utility>

namespace muster::agent {
namespace asio = boost::asio;

ParentWatch::ParentWatch(asio::io_context& loop, int parent, std::function<void()> on_end)
    : keeper_(posix::parent_pid()),
      parent_(parent),
      on_end_(std::move(on_end)),
      ended_(loop),
      timer_(loop) {
  if (auto pidfd = posix::open_pidfd(parent_)) {
    ended_.assign(pidfd->release());
    ended_.async_wait(asio::posix::stream_descriptor::wait_read,
                      life_.guard([this](const boost::system::error_code& error) {
                        if (!error) look();
                      }));
  }
  // It may have ended before: then the number is nobody's, or another's.
  timer_.expires_after(Duration::zero());
  timer_.async_wait(life_.guard([this](const boost::system::error_code& error) {
    if (!error) look();
  }));
}

void ParentWatch::look() {
  if (posix::parent_of(keeper_) != parent_) {
    timer_.cancel();
    if (on_end_) std::exchange(on_end_, {})();
    return;
  }
  if (ended_.is_open()) return;
  timer_.expires_after(kLookInterval);
  timer_.async_wait(life_.guard([this](const boost::system::error_code& error) {
    if (!error) look();
  }));
}

}  // namespace muster::agent

#pragma once

#include "base/posix/fd.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <sys/epoll.h>

namespace muster::posix {

/// A set of descriptors that says which of them are ready; level-triggered, close-on-exec. The set
/// is itself a descriptor, readable while one of its members is ready, so that another loop can
/// watch it. A member leaves the set when it is closed.
class EpollSet {
 public:
  [[nodiscard]] static Result<EpollSet> make() {
    EpollSet set;
    set.fd_.reset(::epoll_create1(EPOLL_CLOEXEC));
    if (!set.fd_) return pass(errno_error(errno, "make an epoll set"));
    return set;
  }

  /// `interest` is of EPOLLIN and EPOLLOUT, 0 for errors and hang-ups only; `name` comes back in
  /// `ready`.
  [[nodiscard]] Result<void> add(int fd, std::uint32_t interest, std::uint64_t name) {
    return control(EPOLL_CTL_ADD, fd, interest, name, "add to an epoll set");
  }
  [[nodiscard]] Result<void> change(int fd, std::uint32_t interest, std::uint64_t name) {
    return control(EPOLL_CTL_MOD, fd, interest, name, "change in an epoll set");
  }

  /// Before it is handed to somebody else.
  void remove(int fd) noexcept { ::epoll_ctl(fd_.get(), EPOLL_CTL_DEL, fd, nullptr); }

  /// The members that are ready now (`events`, and the name in `data.u64`), without waiting. Fewer
  /// than kBatch of them: there are no more. Valid until the next call.
  static constexpr std::size_t kBatch = 512;
  [[nodiscard]] std::span<const epoll_event> ready() {
    const int count = ::epoll_wait(fd_.get(), batch_.data(), static_cast<int>(kBatch), 0);
    return {batch_.data(), static_cast<std::size_t>(count < 0 ? 0 : count)};
  }

  [[nodiscard]] int descriptor() const noexcept { return fd_.get(); }

 private:
  EpollSet() = default;

  Result<void> control(int act, int fd, std::uint32_t interest, std::uint64_t name,
                       const char* what) {
    epoll_event event{};
    event.events = interest;
    event.data.u64 = name;
    if (::epoll_ctl(fd_.get(), act, fd, &event) == 0) return {};
    return pass(errno_error(errno, what));
  }

  Fd fd_;
  std::array<epoll_event, kBatch> batch_;
};

}  // namespace muster::posix

#pragma once

#include "base/error.hpp"

#include <utility>

namespace muster::posix {

/// Owns a file descriptor; closes it. -1 is "none". Move-only.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int raw) noexcept : raw_(raw) {}
  Fd(Fd&& other) noexcept : raw_(std::exchange(other.raw_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    reset(std::exchange(other.raw_, -1));
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  [[nodiscard]] int get() const noexcept { return raw_; }
  [[nodiscard]] int release() noexcept { return std::exchange(raw_, -1); }
  [[nodiscard]] explicit operator bool() const noexcept { return raw_ >= 0; }
  void reset(int raw = -1) noexcept;

 private:
  int raw_ = -1;
};

/// The text of an errno value: "permission denied".
[[nodiscard]] std::string errno_text(int error);

/// An Error for a failed system call: `act: cause`. EMFILE and the like are Unavailable, ENOENT is
/// NotFound, what the user can mend is InvalidArgument.
[[nodiscard]] Error errno_error(int error, std::string act);

/// Another descriptor for the same open file, close-on-exec, above 2.
[[nodiscard]] Result<Fd> duplicate(int fd);

/// Marks every descriptor above 2 that we inherited: no child of ours gets it.
void close_others_on_exec();

struct Pipe {
  Fd reader;
  Fd writer;
};

/// A pipe with both ends close-on-exec.
[[nodiscard]] Result<Pipe> make_pipe();

}  // namespace muster::posix

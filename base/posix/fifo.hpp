#pragma once

#include "base/posix/fd.hpp"

#include <string>

namespace muster::posix {

/// A named pipe that this process reads: mode 0600, non-blocking, and never at its end, whoever
/// writes comes and goes. Removed with this object. Move-only.
class Fifo {
 public:
  /// One that nobody reads any more is replaced. Fails where something else has the name.
  [[nodiscard]] static Result<Fifo> make(const std::string& path);
  Fifo(Fifo&& other) noexcept = default;
  Fifo& operator=(Fifo&&) = delete;
  ~Fifo();

  [[nodiscard]] int descriptor() const { return fd_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  Fifo(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  std::string path_;
  Fd fd_;  // None: moved from.
};

}  // namespace muster::posix

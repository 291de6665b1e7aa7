#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::posix {

/// A text that one process leaves for another, which reads it when the writer has died: at whatever
/// instant that is, the reader finds the last text that was written whole. Shared memory, mapped
/// before the fork. One writer; the reader reads once the writer is dead or at rest.
class SharedNote {
 public:
  static constexpr std::size_t kCapacity = 16 * 1024;  ///< A longer text is refused.

  /// Empty.
  [[nodiscard]] static Result<SharedNote> create();
  SharedNote(SharedNote&& other) noexcept;
  SharedNote& operator=(SharedNote&&) = delete;
  ~SharedNote();

  /// Replaces the text. False: it is too long, and the old one stands.
  [[nodiscard]] bool write(std::string_view text) const noexcept;
  [[nodiscard]] std::string read() const;

 private:
  struct Pages;
  explicit SharedNote(Pages* pages) : pages_(pages) {}
  Pages* pages_;
};

}  // namespace muster::posix

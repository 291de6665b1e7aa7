#pragma once

#include "agent/core/line_cutter.hpp"

#include <string>
#include <string_view>

namespace muster::agent {

/// Which stream has begun a line on a console and not ended it, so that what others write never
/// lands in it: they end it first, and its owner's rest begins with the prefix again.
class OpenLine {
 public:
  /// Appends to `out`, which goes to the console next, what shows this line of a stream. `owner`
  /// tells streams apart.
  void add(std::string& out, const void* owner, std::string_view prefix, const Line& line);

  /// Appends the newline that somebody else's output needs before it, if any.
  void end(std::string& out);

  [[nodiscard]] bool is_open() const { return owner_ != nullptr; }

 private:
  const void* owner_ = nullptr;
};

}  // namespace muster::agent

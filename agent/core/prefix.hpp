#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

/// What stands before each line of a stream, made of the user's template: `${role_name}`,
/// `${local_rank}`, `${rank}` and `${hostname}`, as torchrun has them, and `${time}`.
class Prefix {
 public:
  struct Facts {
    std::string role;
    std::string local_rank;  ///< One, or a set of them: `0-3`.
    std::string rank;
    std::string host;
  };

  Prefix(std::string_view text, const Facts& facts);

  [[nodiscard]] bool has_time() const { return around_time_.size() > 1; }
  /// `time` is what `${time}` becomes.
  [[nodiscard]] std::string text(std::string_view time) const;

 private:
  std::vector<std::string> around_time_;  // The rest, before, between and behind.
};

}  // namespace muster::agent

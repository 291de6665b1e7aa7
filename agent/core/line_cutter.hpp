#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace muster::agent {

/// What a stream has to show: a line, or so much as there is of an unfinished one.
struct Line {
  std::string_view text;    ///< Of carriage returns the last state; without its newline.
  std::size_t shown = 0;    ///< So much of `text` was in a part before this one.
  bool replaces = false;    ///< Another state was shown, which this one is to overwrite.
  bool is_redrawn = false;  ///< Carriage returns draw it: a progress bar.
  bool has_ended = true;    ///< False: its newline is yet to come.
};

/// Cuts one stream of a worker, whatever bytes it carries, into lines. One that is longer than
/// kLineLimit becomes several.
class LineCutter {
 public:
  static constexpr std::size_t kLineLimit = 64 * 1024;

  /// Calls `each` with every line that these bytes complete; it is valid during the call.
  template <class Each>
  void add(std::string_view bytes, Each&& each) {
    const bool has_returns = bytes.find('\r') != std::string_view::npos;
    while (!bytes.empty()) {
      const auto end = bytes.find('\n');
      const bool has_end = end != std::string_view::npos;
      auto piece = bytes.substr(0, end);
      bytes.remove_prefix(has_end ? end + 1 : bytes.size());
      if (has_end && open_.empty() && piece.size() <= kLineLimit) {
        each(Line{.text = has_returns ? last_state(piece) : piece});
        continue;
      }
      while (true) {
        piece.remove_prefix(extend(piece));
        if (piece.empty()) break;
        end_line(each);
      }
      if (has_end) end_line(each);
    }
  }

  /// The line that is unfinished, unless all of it was shown.
  [[nodiscard]] std::optional<Line> unfinished() const;
  /// From now on it was.
  void mark_shown();

  /// Ends a line that is unfinished.
  template <class Each>
  void finish(Each&& each) {
    if (!open_.empty()) end_line(each);
  }

 private:
  static std::string_view last_state(std::string_view text);
  static std::string_view without_returns(std::string_view text);
  std::size_t extend(std::string_view piece);

  template <class Each>
  void end_line(Each&& each) {
    each(Line{.text = open_, .shown = shown_, .replaces = replaces_, .is_redrawn = is_redrawn_});
    open_.clear();
    shown_ = 0;
    replaces_ = is_redrawn_ = false;
  }

  std::string open_;  // The last state of the unfinished line; at most kLineLimit bytes.
  std::size_t shown_ = 0;
  bool replaces_ = false;
  bool is_redrawn_ = false;
};

}  // namespace muster::agent

#include "launcher/text.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <vector>

namespace muster::launcher {

std::string in_quotes(std::string_view text) {
  std::size_t end = 0;  // Never within a character.
  while (end < text.size() && end < kMaxQuoted) {
    end += std::max<std::size_t>(printable_length(text.substr(end)), 1);
  }
  return "'" + printable(text.substr(0, end)) + (end < text.size() ? "'..." : "'");
}

std::size_t edit_distance(std::string_view left, std::string_view right) {
  const std::size_t width = right.size() + 1;
  // rows[i * width + j]: the distance of the first i letters of one to the first j of the other.
  std::vector<std::size_t> rows((left.size() + 1) * width);
  for (std::size_t i = 0; i <= left.size(); ++i) {
    for (std::size_t j = 0; j < width; ++j) {
      std::size_t& here = rows[i * width + j];
      if (i == 0 || j == 0) {
        here = i + j;
        continue;
      }
      const std::size_t replaced =
          rows[(i - 1) * width + j - 1] + (left[i - 1] == right[j - 1] ? 0 : 1);
      here = std::min({rows[(i - 1) * width + j] + 1, rows[i * width + j - 1] + 1, replaced});
      if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1]) {
        here = std::min(here, rows[(i - 2) * width + j - 2] + 1);
      }
    }
  }
  return rows.back();
}

}  // namespace muster::launcher

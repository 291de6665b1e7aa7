#include "launcher/text.hpp"

#include <algorithm>
#include <vector>

namespace muster::launcher {
namespace {

unsigned char byte_at(std::string_view text, std::size_t index) {
  return static_cast<unsigned char>(text[index]);
}

/// Length of the printable UTF-8 character that `text` begins with; 0 where it begins with anything
/// else.
std::size_t printable_length(std::string_view text) {
  const unsigned first = byte_at(text, 0);
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t index = 1; index < length; ++index) {
    if ((byte_at(text, index) & 0xC0U) != 0x80) return 0;
  }
  const unsigned second = byte_at(text, 1);
  if (first == 0xC2 && second < 0xA0) return 0;  // Control characters of the upper half.
  // Encodings that are too long, surrogates, and what lies beyond Unicode's end.
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F)) return 0;
  if ((first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) return 0;
  return length;
}

}  // namespace

std::string in_quotes(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result = "'";
  std::size_t index = 0;
  while (index < text.size() && index < kMaxQuoted) {
    const std::size_t length = printable_length(text.substr(index));
    if (length == 0) {
      const unsigned value = byte_at(text, index++);
      result += "\\x";
      result += kDigits[value >> 4U];
      result += kDigits[value & 0xFU];
    } else {
      result += text.substr(index, length);
      index += length;
    }
  }
  return result + (index < text.size() ? "'..." : "'");
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

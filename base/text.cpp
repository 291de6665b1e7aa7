#include "base/text.hpp"

#include <algorithm>

namespace muster {
namespace {

unsigned char byte_at(std::string_view text, std::size_t index) {
  return static_cast<unsigned char>(text[index]);
}

/// Length of the UTF-8 character that `text`, which is not empty, begins with; 0: with none.
std::size_t utf8_length(std::string_view text) {
  const unsigned first = byte_at(text, 0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t index = 1; index < length; ++index) {
    if ((byte_at(text, index) & 0xC0U) != 0x80) return 0;
  }
  const unsigned second = byte_at(text, 1);
  // Encodings that are too long, surrogates, and what lies beyond Unicode's end.
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F)) return 0;
  if ((first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) return 0;
  return length;
}

bool is_control(unsigned first, unsigned second) {
  return first < 0x20 || first == 0x7F || (first == 0xC2 && second < 0xA0);
}

}  // namespace

std::size_t printable_length(std::string_view text) {
  const auto length = utf8_length(text);
  if (length == 0 || is_control(byte_at(text, 0), length > 1 ? byte_at(text, 1) : 0)) return 0;
  return length;
}

std::string to_utf8(std::string_view text) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  std::string result;
  for (std::size_t index = 0; index < text.size();) {
    const auto length = utf8_length(text.substr(index));
    result += length == 0 ? kReplacement : text.substr(index, length);
    index += std::max<std::size_t>(length, 1);
  }
  return result;
}

std::string printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result;
  for (std::size_t index = 0; index < text.size();) {
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
  return result;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> lines_of(std::string_view text) {
  auto lines = split(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

std::string count_of(std::size_t count, std::string_view noun) {
  auto text = std::to_string(count) + " " + std::string(noun);
  if (count != 1) text += noun.ends_with('s') ? "es" : "s";
  return text;
}

}  // namespace muster

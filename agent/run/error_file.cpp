#include "agent/run/error_file.hpp"

#include "base/posix/stream.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

#include <boost/json.hpp>

namespace muster::agent {
namespace json = boost::json;
namespace {

std::string text_of(const json::object& object, std::string_view name) {
  const auto* const value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::string text_of_nested(const json::object& message) {
  if (const auto* extra = message.if_contains("extraInfo");
      extra != nullptr && extra->is_object()) {
    if (auto stack = text_of(extra->get_object(), "py_callstack"); !stack.empty()) return stack;
  }
  return text_of(message, "message");
}

bool is_hex(std::string_view digits) {
  return digits.size() == 4 &&
         std::ranges::all_of(digits, [](unsigned char digit) { return std::isxdigit(digit) != 0; });
}

/// `\uD83D` of D800 to DBFF, or of DC00 to DFFF, at the beginning of `text`.
bool begins_surrogate(std::string_view text, std::string_view third_digits) {
  return text.size() >= 6 && text.starts_with("\\u") && is_hex(text.substr(2, 4)) &&
         (text[2] == 'd' || text[2] == 'D') && third_digits.find(text[3]) != std::string_view::npos;
}

/// Python writes a byte of a file's name that is not UTF-8 as half a pair of UTF-16, which no JSON
/// may hold: it becomes U+FFFD.
std::string without_lone_surrogates(std::string_view text) {
  constexpr std::string_view kHigh = "89abAB";
  constexpr std::string_view kLow = "cdefCDEF";
  constexpr std::size_t kEscape = 6;
  std::string mended;
  while (!text.empty()) {
    std::size_t kept = 1;
    if (begins_surrogate(text, kHigh) && begins_surrogate(text.substr(kEscape), kLow)) {
      kept = 2 * kEscape;
    } else if (begins_surrogate(text, kHigh) || begins_surrogate(text, kLow)) {
      mended += "\\ufffd";
      text.remove_prefix(kEscape);
      continue;
    } else if (text.starts_with('\\') && text.size() > 1) {
      kept = 2;  // An escaped backslash begins nothing.
    }
    mended += text.substr(0, kept);
    text.remove_prefix(kept);
  }
  return mended;
}

}  // namespace

RecordedError recorded_error(const std::string& path) {
  const auto content = posix::file_tail(path, kMaxErrorFile + 1);
  if (content.empty()) return {};
  if (content.size() > kMaxErrorFile) return {{}, "it has more than 1 MiB"};
  json::error_code error;
  const auto document = json::parse(without_lone_surrogates(content), error);
  if (error) return {{}, "it is not JSON: " + error.message()};
  if (!document.is_object()) return {{}, "it holds no JSON object"};
  const auto* const message = document.get_object().if_contains("message");
  auto text = message != nullptr && message->is_object()
                  ? text_of_nested(message->get_object())
                  : text_of(document.get_object(), "message");
  if (text.empty()) return {{}, "it has no message"};
  return {std::move(text), {}};
}

}  // namespace muster::agent

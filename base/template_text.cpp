#include "base/template_text.hpp"

#include <algorithm>

namespace muster {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_letter(c) || (c >= '0' && c <= '9'); }

/// The name that the text begins with; empty: none.
std::string_view leading_name(std::string_view text) {
  if (text.empty() || !is_letter(text.front())) return {};
  const auto* const end = std::find_if_not(text.begin(), text.end(), is_word);
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

}  // namespace

std::string substituted(
    std::string_view text,
    const std::function<std::optional<std::string>(std::string_view name)>& value_of) {
  std::string result;
  while (true) {
    const auto dollar = text.find('$');
    result += text.substr(0, dollar);
    if (dollar == std::string_view::npos) return result;
    text.remove_prefix(dollar + 1);
    if (text.starts_with('$')) {
      result += '$';
      text.remove_prefix(1);
      continue;
    }
    const bool braced = text.starts_with('{');
    const auto name = leading_name(text.substr(braced ? 1 : 0));
    const bool is_whole =
        !name.empty() && (!braced || text.substr(name.size() + 1).starts_with('}'));
    const auto value = is_whole ? value_of(name) : std::nullopt;
    if (value) {
      result += *value;
      text.remove_prefix(name.size() + (braced ? 2 : 0));
    } else {
      result += '$';
    }
  }
}

}  // namespace muster

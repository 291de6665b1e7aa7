#include "launcher/config_file.hpp"

#include "base/text.hpp"
#include "launcher/flags.hpp"
#include "launcher/text.hpp"
#include "launcher/values.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace muster::launcher {
namespace {

struct Integer {
  std::string digits;
};
using Value = std::variant<std::string, Integer, bool, std::vector<std::string>>;

constexpr std::string_view kBlanks = " \t";
/// They answer at once, or are about this very run.
constexpr std::array<std::string_view, 2> kNotInFiles{"explain", "config"};

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

/// One line of the file. What is wrong with it is thrown nowhere: `wrong()` keeps the first cause.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) {}

  [[nodiscard]] const std::string& cause() const { return cause_; }
  [[nodiscard]] bool is_over() {
    skip_blanks();
    return rest_.empty() || rest_.front() == '#';
  }

  bool takes(char c) {
    skip_blanks();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::string name() {
    skip_blanks();
    const auto end = std::ranges::find_if_not(rest_, is_name_character) - rest_.begin();
    std::string name(rest_.substr(0, static_cast<std::size_t>(end)));
    rest_.remove_prefix(name.size());
    return name;
  }

  std::optional<Value> value() {
    skip_blanks();
    if (rest_.starts_with('[')) return array();
    if (rest_.starts_with('"') || rest_.starts_with('\'')) {
      if (auto text = string()) return *std::move(text);
      return std::nullopt;
    }
    const auto end = std::min(rest_.find_first_of(" \t#"), rest_.size());
    const std::string word(rest_.substr(0, end));
    rest_.remove_prefix(end);
    if (word == "true" || word == "false") return word == "true";
    const auto digits = word.substr(word.starts_with('-') || word.starts_with('+') ? 1 : 0);
    // As TOML has them: no 007.
    const bool leads_with_zero = digits.size() > 1 && digits.front() == '0';
    if (parse_integer(word) && !leads_with_zero) return Integer{word};
    return wrong(word.empty() ? "the value is missing"
                              : in_quotes(word) + " is no value: put a text into quotes");
  }

 private:
  std::nullopt_t wrong(std::string cause) {
    if (cause_.empty()) cause_ = std::move(cause);
    return std::nullopt;
  }

  void skip_blanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlanks), rest_.size()));
  }

  /// "..." with escapes, or '...' as it stands.
  std::optional<std::string> string() {
    const char quote = rest_.front();
    if (rest_.starts_with(std::string(3, quote))) return wrong("a text of several lines");
    rest_.remove_prefix(1);
    std::string text;
    while (!rest_.empty() && rest_.front() != quote) {
      char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '\\' && quote == '"') {
        const auto meant = escaped();
        if (!meant) return std::nullopt;
        c = *meant;
      } else if (static_cast<unsigned char>(c) < ' ' && c != '\t') {
        return wrong("a control character in a text");
      }
      text += c;
    }
    if (!takes(quote)) return wrong("the closing quote is missing");
    return text;
  }

  std::optional<char> escaped() {
    constexpr std::string_view kLetters = "\"\\tnrbf";
    constexpr std::string_view kMeanings = "\"\\\t\n\r\b\f";
    const auto at = rest_.empty() ? std::string_view::npos : kLetters.find(rest_.front());
    if (at == std::string_view::npos) {
      return wrong("a backslash before " + in_quotes(rest_.substr(0, 1)) +
                   ": put the text into single quotes, or write two backslashes");
    }
    rest_.remove_prefix(1);
    return kMeanings[at];
  }

  std::optional<Value> array() {
    takes('[');
    std::vector<std::string> texts;
    while (!takes(']')) {
      skip_blanks();
      if (!rest_.starts_with('"') && !rest_.starts_with('\''))
        return wrong("an array has texts in quotes, and ends on its line");
      auto text = string();
      if (!text) return std::nullopt;
      texts.push_back(*std::move(text));
      if (takes(',')) continue;
      if (!takes(']')) return wrong("an array needs a comma, or its ']' on the same line");
      break;
    }
    return texts;
  }

  std::string_view rest_;
  std::string cause_;
};

const Flag* flag_of(std::string name) {
  std::ranges::replace(name, '_', '-');
  const auto at = std::ranges::find(flags(), name, &Flag::name);
  return at == flags().end() ? nullptr : &*at;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const auto& text : texts) all += (all.empty() ? "" : ",") + text;
  return all;
}

/// As the command line would give it; the error says what the flag takes.
Result<std::string> text_for(const Flag& flag, const Value& value) {
  const bool is_switch = flag.takes == Takes::Nothing;
  if (const auto* on = std::get_if<bool>(&value)) {
    if (is_switch) return *on ? "1" : "0";
    if (flag.takes == Takes::MaybeValue && *on) return std::string(flag.implied);
  } else if (is_switch) {
    return fail(Errc::InvalidArgument, "is a switch: true or false");
  }
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* number = std::get_if<Integer>(&value)) return number->digits;
  const auto* texts = std::get_if<std::vector<std::string>>(&value);
  if (texts != nullptr && flag.takes == Takes::Values) return joined(*texts);
  return fail(Errc::InvalidArgument, "takes one text in quotes, or an integer");
}

}  // namespace

Result<GivenFlags> parse_config(std::string_view text, const std::string& path) {
  GivenFlags given;
  std::size_t number = 0;
  bool in_table = false;
  for (std::string_view words : split(text, '\n')) {
    ++number;
    const auto place = path + ":" + std::to_string(number);
    const auto refuse = [&place](const std::string& what) {
      return fail(Errc::InvalidArgument, place + ": " + what);
    };
    if (words.ends_with('\r')) words.remove_suffix(1);
    Line line(words);
    if (line.is_over()) continue;
    if (line.takes('[')) {
      const bool is_ours = line.name() == "muster" && line.takes(']') && line.is_over();
      if (!is_ours || in_table || !given.empty())
        return refuse("the only table that may be there is [muster], before all flags");
      in_table = true;
      continue;
    }
    const auto name = line.name();
    if (name.empty() || !line.takes('='))
      return refuse(in_quotes(words) + " is no line such as nnodes = 2");
    const auto* const flag = flag_of(name);
    if (flag == nullptr) return refuse("no flag is named " + in_quotes(name));
    if (flag->owner == Owner::NotYet)
      return refuse(name + " is a flag of torchrun that this version of muster does not have yet");
    if (flag->takes == Takes::Over ||
        std::ranges::find(kNotInFiles, flag->name) != kNotInFiles.end())
      return refuse(name + " can be given on the command line only");
    const auto value = line.value();
    if (!value) return refuse(name + ": " + line.cause());
    if (!line.is_over()) return refuse(name + ": something stands behind the value");
    auto as_given = text_for(*flag, *value);
    if (!as_given) return refuse(name + " " + as_given.error().message);
    const bool is_new =
        given.emplace(flag->name, Given{*std::move(as_given), place + ": " + name}).second;
    if (!is_new) return refuse(name + " is given a second time");
  }
  return given;
}

}  // namespace muster::launcher

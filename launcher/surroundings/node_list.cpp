#include "launcher/surroundings/node_list.hpp"

#include "launcher/text.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace muster::launcher {
namespace {

using Names = std::vector<std::string>;

/// The longest name, and the deepest brackets in brackets; what exceeds them is an error.
constexpr std::size_t kLongestName = 255;
constexpr int kDeepest = 4;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// At most nine digits: it fits, and so does a number behind it.
std::optional<std::uint32_t> number_in(std::string_view text) {
  constexpr std::size_t kMostDigits = 9;
  if (text.empty() || text.size() > kMostDigits || !std::ranges::all_of(text, is_digit))
    return std::nullopt;
  std::uint32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Descends through a list; `at_` is the character that is looked at.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Names> parse() {
    auto names = list(0);
    if (names && at_ < text_.size()) return wrong("']' without a '['");
    return names;
  }

 private:
  [[nodiscard]] bool sees(char c) const { return at_ < text_.size() && text_[at_] == c; }

  [[nodiscard]] tl::unexpected<Error> wrong(const std::string& what) const {
    return fail(Errc::InvalidArgument, in_quotes(text_) + " is no list of nodes: " + what +
                                           " at character " + std::to_string(at_ + 1));
  }

  /// Items with commas between, to the end or to a ']'.
  Result<Names> list(int depth) {
    Names names;
    while (true) {
      auto some = item(depth);
      if (!some) return some;
      if (names.size() + some->size() > kMaxListed) return too_many();
      std::ranges::move(*some, std::back_inserter(names));
      if (!sees(',')) return names;
      ++at_;
    }
  }

  /// A name, or as many as its brackets make of it. In brackets also a range.
  Result<Names> item(int depth) {
    Names names{""};
    const auto begin = at_;
    while (at_ < text_.size() && !sees(',') && !sees(']')) {
      auto part = sees('[') ? brackets(depth) : Result<Names>(Names{literal()});
      if (!part) return part;
      auto longer = product(names, *part);
      if (!longer) return longer;
      names = std::move(*longer);
    }
    if (at_ == begin) return wrong("a name is missing");
    if (depth == 0) return names;
    return range(text_.substr(begin, at_ - begin), std::move(names));
  }

  std::string literal() {
    const auto end = std::min(text_.find_first_of("[],", at_), text_.size());
    std::string name(text_.substr(at_, end - at_));
    at_ = end;
    return name;
  }

  Result<Names> brackets(int depth) {
    if (depth == kDeepest) return wrong("too many brackets in brackets");
    ++at_;
    auto names = list(depth + 1);
    if (!names) return names;
    if (!sees(']')) return wrong("a ']' is missing");
    ++at_;
    return names;
  }

  /// `01-03`; `names` where the text is none.
  Result<Names> range(std::string_view text, Names names) const {
    const auto dash = text.find('-');
    if (dash == std::string_view::npos) return names;
    const auto low_text = text.substr(0, dash);
    const auto low = number_in(low_text);
    const auto high = number_in(text.substr(dash + 1));
    if (!low || !high) return names;
    if (*high < *low) return wrong("a range that runs backwards");
    if (*high - *low >= kMaxListed) return too_many();
    names.clear();
    for (auto number = *low; number <= *high; ++number) {
      auto digits = std::to_string(number);
      if (digits.size() < low_text.size()) digits.insert(0, low_text.size() - digits.size(), '0');
      names.push_back(std::move(digits));
    }
    return names;
  }

  Result<Names> product(const Names& heads, const Names& tails) const {
    if (heads.size() * tails.size() > kMaxListed) return too_many();
    Names names;
    names.reserve(heads.size() * tails.size());
    for (const auto& head : heads) {
      for (const auto& tail : tails) {
        if (head.size() + tail.size() > kLongestName) return wrong("a name that is too long");
        names.push_back(head + tail);
      }
    }
    return names;
  }

  [[nodiscard]] tl::unexpected<Error> too_many() const {
    return wrong("more than " + std::to_string(kMaxListed) + " nodes");
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<Names> parse_node_list(std::string_view text) { return Parser(text).parse(); }

Result<std::vector<std::uint32_t>> parse_counts(std::string_view text) {
  std::vector<std::uint32_t> counts;
  const auto wrong =
      fail(Errc::InvalidArgument, in_quotes(text) + " is no list of counts such as 4(x2),3");
  for (std::string_view rest = text;;) {
    const auto part = rest.substr(0, rest.find(','));
    const auto open = part.find("(x");
    const auto count = number_in(part.substr(0, open));
    std::optional<std::uint32_t> times = 1;
    if (open != std::string_view::npos) {
      if (!part.ends_with(')')) return wrong;
      times = number_in(part.substr(open + 2, part.size() - open - 3));
    }
    if (!count || !times || *times == 0 || counts.size() + *times > kMaxListed) return wrong;
    counts.insert(counts.end(), *times, *count);
    if (part.size() == rest.size()) return counts;
    rest.remove_prefix(part.size() + 1);
  }
}

}  // namespace muster::launcher

#include "launcher/argv.hpp"

#include "launcher/text.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>
#include <variant>

namespace muster::launcher {
namespace {

/// Words longer than this are no misspelt flags.
constexpr std::size_t kLongestFlag = 64;

struct Plain {};  // A script or a value.
struct Known {
  const Flag* flag;
  std::string spelling;                   // As it was meant: `--nproc_per_node`, `-r`.
  std::optional<std::string_view> value;  // Of the same word.
};
struct Ambiguous {
  std::vector<std::string> spellings;
};
struct Unknown {};
using Meaning = std::variant<Plain, Known, Ambiguous, Unknown>;

bool is_negative_number(std::string_view word) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const std::string_view digits = word.substr(1);
  const auto dot = digits.find('.');
  const std::string_view fraction = dot == std::string_view::npos ? digits : digits.substr(dot + 1);
  const std::string_view whole = dot == std::string_view::npos ? "" : digits.substr(0, dot);
  return !fraction.empty() && std::ranges::all_of(fraction, is_digit) &&
         std::ranges::all_of(whole, is_digit);
}

/// Of `r3` in `-r3`: -r with the value 3. A switch's "value" may be more switches.
Meaning by_letter(std::string_view letters) {
  const auto found = std::ranges::find(flags(), letters[0], &Flag::letter);
  if (found == flags().end()) return Unknown{};
  Known known{&*found, {'-', letters[0]}, std::nullopt};
  if (letters.size() > 1) known.value = letters.substr(letters[1] == '=' ? 2 : 1);
  return known;
}

Meaning by_name(std::string_view word) {
  const auto equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  std::optional<std::string_view> value;
  if (equals != std::string_view::npos) value = word.substr(equals + 1);

  std::vector<Known> torchruns;
  std::vector<Known> ours;
  for (const Flag& flag : flags()) {
    for (const std::string& spelling : long_options(flag)) {
      if (spelling == name) return Known{&flag, spelling, value};
      if (!spelling.starts_with(name)) continue;
      (flag.owner == Owner::Muster ? ours : torchruns).push_back({&flag, spelling, value});
    }
  }
  if (torchruns.size() == 1) return torchruns.front();
  if (torchruns.empty() && ours.size() == 1) return ours.front();
  Ambiguous ambiguous;
  for (const auto& candidates : {torchruns, ours}) {
    for (const Known& known : candidates) ambiguous.spellings.push_back(known.spelling);
  }
  if (ambiguous.spellings.empty()) return Unknown{};
  return ambiguous;
}

/// What a word means where a flag may stand. `--` alone is not asked about.
Meaning meaning_of(std::string_view word) {
  if (word.size() < 2 || word[0] != '-') return Plain{};
  Meaning meaning = word[1] == '-' ? by_name(word) : by_letter(word.substr(1));
  if (std::holds_alternative<Unknown>(meaning) &&
      (is_negative_number(word) || word.find(' ') != std::string_view::npos)) {
    return Plain{};
  }
  return meaning;
}

Error usage(std::string message) { return {Errc::InvalidArgument, std::move(message)}; }

Error ambiguous_error(std::string_view word, const Ambiguous& ambiguous) {
  std::string message = "ambiguous flag " + in_quotes(word.substr(0, word.find('='))) + ": write ";
  for (std::size_t index = 0; index < ambiguous.spellings.size(); ++index) {
    if (index > 0) message += index + 1 == ambiguous.spellings.size() ? " or " : ", ";
    message += ambiguous.spellings[index];
  }
  return usage(message + " in full");
}

/// Lower case, with dashes, without leading ones and without a value.
std::string flag_like(std::string_view word) {
  std::string name(word.substr(0, word.find_first_of("= ")));
  name.erase(0, std::min(name.find_first_not_of("-_"), name.size()));
  for (char& c : name) {
    c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return name;
}

/// A bare --pass-local-rank has no value behind it, but is often given one.
bool is_local_rank_style(std::string_view word) { return word == "dash" || word == "underscore"; }

Error misplaced_style_error(std::string_view spelling, const std::string& style) {
  return usage(std::string(spelling) + " takes its value behind a '=': write " +
               std::string(spelling) + "=" + style + " (for a program of that name " +
               std::string(spelling) + "=underscore " + style + ")");
}

Error unknown_error(std::string_view word) {
  std::string message = "unknown flag " + in_quotes(word);
  const std::string name = flag_like(word);
  if (name == "use-env") {
    return usage(message +
                 ": it is always so here, workers find their rank in LOCAL_RANK; a script that "
                 "wants --local_rank=N gets it by --pass-local-rank");
  }
  if (name.empty() || name.size() > kLongestFlag) return usage(message);
  const auto distance = [&name](const Flag& flag) { return edit_distance(name, flag.name); };
  const auto nearest = std::ranges::min_element(flags(), {}, distance);
  const std::size_t off = distance(*nearest);
  // A third of the letters wrong is a slip; more is another word.
  if (off * 3 > nearest->name.size()) return usage(message);
  message += ": did you mean " + long_option(*nearest) + "?";
  if (off == 0 && word.find(' ') != std::string_view::npos) {
    message += " Flag and value stand in one word here: leave the quotes out";
  }
  return usage(message);
}

class Cutter {
 public:
  explicit Cutter(std::span<const std::string> words) : words_(words) {}

  Result<CutCommandLine> cut() {
    while (next_ < words_.size() && over_ == nullptr) {
      const std::string& word = words_[next_++];
      if (word == "--") {
        if (next_ < words_.size()) take_script(words_[next_++], false);
        break;
      }
      // A blank makes a value of what begins with a dash, but nobody calls a script so.
      const Meaning meaning = meaning_of(word);
      if (std::holds_alternative<Unknown>(meaning) || is_quoted_flag(word, meaning)) {
        object(unknown_error(word));
      } else if (const auto* ambiguous = std::get_if<Ambiguous>(&meaning)) {
        object(ambiguous_error(word, *ambiguous));
      } else if (const auto* known = std::get_if<Known>(&meaning)) {
        if (const auto taken = take_flag(*known); !taken) object(taken.error());
      } else {
        take_script(word, true);
        break;
      }
    }
    if (over_ != nullptr) {
      CutCommandLine nothing_else;
      nothing_else.flags.push_back(long_option(*over_));
      return nothing_else;
    }
    if (objection_) return pass(*objection_);
    return std::move(result_);
  }

 private:
  static bool is_quoted_flag(std::string_view word, const Meaning& meaning) {
    return std::holds_alternative<Plain>(meaning) && word.size() > 1 && word[0] == '-' &&
           !is_negative_number(word);
  }

  /// The first objection counts; the rest is read in search of --help.
  void object(Error error) {
    if (!objection_) objection_ = std::move(error);
  }

  void take_script(const std::string& script, bool drop_dashes) {
    result_.script = script;
    if (drop_dashes && next_ < words_.size() && words_[next_] == "--") ++next_;
    const auto rest = words_.subspan(next_);
    result_.script_args.assign(rest.begin(), rest.end());
  }

  Result<void> take_flag(Known known) {
    while (true) {
      const Flag& flag = *known.flag;
      if (flag.owner == Owner::NotYet) {
        skip_value(known);
        if (std::ranges::find(result_.not_yet, &flag) == result_.not_yet.end()) {
          result_.not_yet.push_back(&flag);
        }
        return {};
      }
      result_.flags.push_back(long_option(flag));
      if (flag.takes != Takes::Nothing && flag.takes != Takes::Over) {
        const auto value = value_of(known);
        if (!value) return pass(value.error());
        result_.flags.push_back(*value);
        return {};
      }
      if (!known.value) {
        if (flag.takes == Takes::Over) over_ = &flag;
        return {};
      }
      const bool is_letter = known.spelling.size() == 2;
      const Meaning rest = is_letter && !known.value->empty() ? by_letter(*known.value) : Unknown{};
      if (!std::holds_alternative<Known>(rest)) {
        return pass(usage(known.spelling + " takes no value, but " + in_quotes(*known.value) +
                          " was given"));
      }
      if (flag.takes == Takes::Over) {
        over_ = &flag;
        return {};
      }
      known = std::get<Known>(rest);
    }
  }

  /// Of a flag that is refused anyway: only so that the value is not taken for the script.
  void skip_value(const Known& known) {
    if (known.value || known.flag->takes == Takes::Nothing || next_ == words_.size()) return;
    const std::string& word = words_[next_];
    if (word != "--" && std::holds_alternative<Plain>(meaning_of(word))) ++next_;
  }

  Result<std::string> value_of(const Known& known) {
    if (known.value) return std::string(*known.value);
    if (known.flag->takes == Takes::MaybeValue) {
      const bool has_style = known.flag->name == "pass-local-rank";
      if (has_style && next_ < words_.size() && is_local_rank_style(words_[next_])) {
        return pass(misplaced_style_error(known.spelling, words_[next_++]));
      }
      return std::string(known.flag->implied);
    }
    const std::string needs =
        known.spelling + " needs a value (" + std::string(known.flag->value) + ")";
    if (next_ == words_.size()) return pass(usage(needs));
    const std::string& word = words_[next_];
    if (word == "--") return pass(usage(needs));
    const Meaning meaning = meaning_of(word);
    if (const auto* ambiguous = std::get_if<Ambiguous>(&meaning)) {
      return pass(ambiguous_error(word, *ambiguous));
    }
    if (!std::holds_alternative<Plain>(meaning)) {
      return pass(usage(needs + "; one that begins with a dash is written " + known.spelling + "=" +
                        in_quotes(word)));
    }
    ++next_;
    return word;
  }

  std::span<const std::string> words_;
  std::size_t next_ = 0;
  CutCommandLine result_;
  const Flag* over_ = nullptr;  // Ends everything: --help or --version.
  std::optional<Error> objection_;
};

}  // namespace

Result<CutCommandLine> cut_command_line(std::span<const std::string> words) {
  return Cutter(words).cut();
}

}  // namespace muster::launcher

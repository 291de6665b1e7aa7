#include "launcher/values.hpp"

#include "base/exit_status.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster::launcher {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Without its underscores, each of which must stand between two digits.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string plain;
  for (std::size_t index = 0; index < text.size(); ++index) {
    if (text[index] != '_') {
      plain += text[index];
      continue;
    }
    const bool between = index > 0 && is_digit(text[index - 1]) && index + 1 < text.size() &&
                         is_digit(text[index + 1]);
    if (!between) return std::nullopt;
  }
  return plain;
}

template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  auto plain = without_underscores(trimmed(text));
  if (!plain) return std::nullopt;
  std::string_view rest = *plain;
  if (rest.starts_with('+')) {  // from_chars knows no plus sign.
    rest.remove_prefix(1);
    if (rest.starts_with('-')) return std::nullopt;
  }
  Number number{};
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc{} || end != rest.data() + rest.size()) return std::nullopt;
  return number;
}

std::optional<LocalRank> parse_rank(std::string_view text) {
  const auto number = parse_integer(text);
  if (!number || *number < 0 || *number > kMaxLocalRank) return std::nullopt;
  return LocalRank{static_cast<std::uint32_t>(*number)};
}

std::optional<Streams> parse_streams(std::string_view text) {
  if (text.size() != 1 || text[0] < '0' || text[0] > '3') return std::nullopt;
  return static_cast<Streams>(text[0] - '0');
}

/// The number that an entry of CUDA_VISIBLE_DEVICES begins with; nullopt where it begins with none
/// or a negative one.
std::optional<std::uint32_t> leading_ordinal(std::string_view entry) {
  entry = trimmed(entry);
  if (entry.starts_with('+')) entry.remove_prefix(1);
  std::uint32_t ordinal = 0;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), ordinal);
  if (error != std::errc{}) return std::nullopt;
  return ordinal;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r\x1c\x1d\x1e\x1f";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  return whole_number<std::int64_t>(text);
}

std::optional<double> parse_number(std::string_view text) { return whole_number<double>(text); }

std::optional<Duration> parse_time(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, Duration>, 5> kUnits{{
      {"ms", std::chrono::milliseconds(1)},
      {"s", std::chrono::seconds(1)},
      {"m", std::chrono::minutes(1)},
      {"h", std::chrono::hours(1)},
      {"", std::chrono::seconds(1)},
  }};
  const std::string_view whole = trimmed(text);
  for (const auto& [name, unit] : kUnits) {
    if (!whole.ends_with(name)) continue;
    const std::string_view digits = whole.substr(0, whole.size() - name.size());
    // `5 s` is no time: the blank would split it on a command line.
    if (digits != trimmed(digits)) return std::nullopt;
    const auto count = parse_integer(digits);
    if (!count || *count < 0 || *count > kMaxTime / unit) return std::nullopt;
    return *count * unit;
  }
  return std::nullopt;
}

std::optional<StreamMap> parse_stream_map(std::string_view text) {
  StreamMap map;
  if (const auto everyone = parse_streams(text)) {
    map.everyone = *everyone;
    return map;
  }
  for (const std::string_view entry : split(text, ',')) {
    const auto colon = entry.find(':');
    if (colon == std::string_view::npos || !std::ranges::all_of(entry.substr(0, colon), is_digit)) {
      return std::nullopt;
    }
    const auto rank = parse_rank(entry.substr(0, colon));
    const auto streams = parse_streams(entry.substr(colon + 1));
    if (!rank || !streams) return std::nullopt;
    map.named[*rank] = *streams;
  }
  return map;
}

std::optional<RankSet> parse_ranks(std::string_view text, std::uint32_t highest) {
  RankSet ranks;
  for (const std::string_view entry : split(text, ',')) {
    const auto dash = entry.find('-', entry.empty() ? 0 : 1);  // The first may be a sign.
    const auto first = parse_integer(entry.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : parse_integer(entry.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last > highest) return std::nullopt;
    ranks.insert(static_cast<std::uint32_t>(*first), static_cast<std::uint32_t>(*last));
  }
  return ranks;
}

std::optional<std::vector<std::string>> parse_texts(std::string_view text) {
  std::vector<std::string> texts(1);
  while (!text.empty()) {
    const auto comma = text.find(',');
    texts.back() += text.substr(0, comma);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.starts_with(',')) {
      texts.back() += ',';
      text.remove_prefix(1);
    } else {
      texts.emplace_back();
    }
  }
  const bool has_empty = std::ranges::any_of(texts, &std::string::empty);
  return has_empty ? std::nullopt : std::optional(std::move(texts));
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  auto number = trimmed(text);
  const auto unit = number.find_first_not_of("0123456789_+");
  const auto suffix = unit == std::string_view::npos ? "" : number.substr(unit);
  number = number.substr(0, unit);
  unsigned shift = 0;
  if (!suffix.empty()) {
    const auto power =
        kUnits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(suffix.front()))));
    const auto rest = suffix.substr(1);
    const bool is_plain = rest.empty() || rest == "B" || rest == "b" || rest == "iB";
    if (power == std::string_view::npos || !is_plain) return std::nullopt;
    shift = static_cast<unsigned>(10 * (power + 1));
  }
  const auto count = parse_integer(number);
  if (!count || *count < 0 || *count > (std::numeric_limits<std::int64_t>::max() >> shift))
    return std::nullopt;
  return static_cast<std::uint64_t>(*count) << shift;
}

std::optional<NodeCounts> parse_nodes(std::string_view text) {
  const auto parts = split(text, ':');
  if (parts.size() > 3) return std::nullopt;
  std::vector<std::uint32_t> numbers;
  for (const auto part : parts) {
    const auto number = parse_integer(part);
    if (!number || *number < 1 || *number > kMaxNodes) return std::nullopt;
    numbers.push_back(static_cast<std::uint32_t>(*number));
  }
  NodeCounts nodes{.min = numbers[0], .max = numbers[0]};
  if (numbers.size() > 1) nodes.max = numbers[1];
  if (numbers.size() > 2) nodes.step = numbers[2];
  if (nodes.max < nodes.min) return std::nullopt;
  return nodes;
}

std::optional<int> parse_signal(std::string_view text) {
  constexpr int kHighest = 64;
  std::string name(trimmed(text));
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (const auto number = parse_integer(name)) {
    if (*number < 1 || *number > kHighest) return std::nullopt;
    return static_cast<int>(*number);
  }
  if (!name.starts_with("SIG")) name = "SIG" + name;
  for (int signal = 1; signal <= kHighest; ++signal) {
    if (signal_name(signal) == name) return signal;
  }
  return std::nullopt;
}

bool is_host_text(std::string_view text) {
  return !text.empty() && std::ranges::none_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= ' ' || byte >= 0x7F || c == '/';
  });
}

std::uint32_t visible_devices(std::string_view text, std::uint32_t devices) {
  // CUDA takes ordinals until one makes no sense; one named twice hides all of them.
  const bool by_uuid = text.starts_with("GPU-") || text.starts_with("MIG-");
  std::set<std::string_view> uuids;
  std::set<std::uint32_t> ordinals;
  for (const std::string_view entry : split(text, ',')) {
    if (by_uuid) {
      if (!entry.starts_with(text.substr(0, 4))) break;
      if (!uuids.insert(entry).second) return 0;
      continue;
    }
    const auto ordinal = leading_ordinal(entry);
    if (!ordinal) break;
    if (!ordinals.insert(*ordinal).second) return 0;
  }
  if (by_uuid) return devices == 0 ? 0 : static_cast<std::uint32_t>(uuids.size());
  std::uint32_t shown = 0;
  for (const std::string_view entry : split(text, ',')) {
    const auto ordinal = leading_ordinal(entry);
    if (!ordinal || *ordinal >= devices) break;
    ++shown;
  }
  return shown;
}

}  // namespace muster::launcher

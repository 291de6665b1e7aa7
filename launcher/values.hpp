#pragma once

#include "base/ids.hpp"
#include "base/rank_set.hpp"
#include "launcher/options.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What the texts of flags and variables mean. Each is nullopt where the text means nothing.
namespace muster::launcher {

/// The highest local rank that can be named, and the most workers that can be asked for, less one.
constexpr std::uint32_t kMaxLocalRank = 65535;

/// The longest time that a flag may ask for: a year.
constexpr Duration kMaxTime = std::chrono::hours(24 * 365);

/// The most nodes that a job can be asked to have.
constexpr std::uint32_t kMaxNodes = 20000;

/// The highest rank that any job can have.
constexpr std::uint32_t kMaxRank = kMaxNodes * (kMaxLocalRank + 1) - 1;

/// What `--lease` may be: shorter ones would be missed by a busy machine, longer ones hold up every
/// restart of a server.
constexpr Duration kMinLease = std::chrono::milliseconds(500);
constexpr Duration kMaxLease = std::chrono::hours(1);

/// Without the blanks that Python's numbers may have around them.
[[nodiscard]] std::string_view trimmed(std::string_view text);

/// The parts between `at`s: always one more than there are of them.

/// As Python's int() reads it: ` 1 `, `+2`, `-3`, `1_000`, `007`; no `0x10`, no `1.5`. Also nullopt
/// beyond 64 bits.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text);

/// As Python's float() reads it, in decimal: `0.1`, `1e3`, `.5`, `1_0.5`.
[[nodiscard]] std::optional<double> parse_number(std::string_view text);

/// Seconds as an integer, or an integer with a unit: `500ms`, `30s`, `5m`, `1h`. From 0 to
/// kMaxTime.
[[nodiscard]] std::optional<Duration> parse_time(std::string_view text);

/// `0` none, `1` stdout, `2` stderr, `3` both; or by local rank: `0:3,12:1`, ranks not named being
/// none.
[[nodiscard]] std::optional<StreamMap> parse_stream_map(std::string_view text);

/// Ranks, or ranges of them, with commas between: `0,3-5,12`; none above `highest`.
[[nodiscard]] std::optional<RankSet> parse_ranks(std::string_view text, std::uint32_t highest);

/// Texts with commas between them, `,,` being a comma of a text; none is empty.
[[nodiscard]] std::optional<std::vector<std::string>> parse_texts(std::string_view text);

/// Bytes, or so many K, M, G or T (also KB, KiB ...), powers of 1024.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);

/// How many nodes a job may have: the multiples of `step` from `min` to `max`.
struct NodeCounts {
  std::uint32_t min = 1;
  std::uint32_t max = 1;
  std::uint32_t step = 1;
};

/// `2`, `1:4` or `2:8:2`; 0 < min <= max <= kMaxNodes, step > 0.
[[nodiscard]] std::optional<NodeCounts> parse_nodes(std::string_view text);

/// `SIGTERM`, `term`, `15`; nullopt where this system has none of that name or number.
[[nodiscard]] std::optional<int> parse_signal(std::string_view text);

/// Whether the text may be a host's name or address as far as its characters go: printable ASCII,
/// no blank, no slash.
[[nodiscard]] bool is_host_text(std::string_view text);

/// How many of `devices` CUDA shows to a process whose CUDA_VISIBLE_DEVICES is this text.
[[nodiscard]] std::uint32_t visible_devices(std::string_view text, std::uint32_t devices);

}  // namespace muster::launcher

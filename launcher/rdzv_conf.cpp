#include "launcher/rdzv_conf.hpp"

#include "base/text.hpp"
#include "launcher/text.hpp"
#include "launcher/values.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string_view>

namespace muster::launcher {
namespace {

struct Entry {
  std::string_view key;
  std::string_view value;
};

/// What a key of torchrun is about that has nothing to act on here.
struct Meaningless {
  std::string_view key;
  std::string_view why;
};

constexpr std::array kMeaningless{
    Meaningless{"close_timeout", "closing waits for nothing"},
    Meaningless{"heartbeat_timeout", "a node's lease decides: --lease"},
    Meaningless{"keep_alive_interval", "a node's lease decides: --lease"},
    Meaningless{"keep_alive_max_attempt", "a node's lease decides: --lease"},
    Meaningless{"read_timeout", "join_timeout covers the connection as well"},
    Meaningless{"cas_backoff_max_seconds", "nodes do not contend for a shared state"},
    Meaningless{"rank", "--node-rank says it, as with torchrun"},
};

/// Parameters of torchrun's own function: a key of that name ends it.
constexpr std::array<Meaningless, 6> kFlags{{{"backend", "--rdzv-backend"},
                                             {"endpoint", "--rdzv-endpoint"},
                                             {"run_id", "--rdzv-id"},
                                             {"min_nodes", "--nnodes"},
                                             {"max_nodes", "--nnodes"},
                                             {"local_addr", "--local-addr"}}};

constexpr std::array<std::string_view, 5> kUsed{"is_host", "join_timeout", "last_call_timeout",
                                                "timeout", "store_type"};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

Error bad_entry(const Given& given, const Entry& entry, std::string_view right) {
  return {Errc::InvalidArgument, given.origin + ": " + std::string(entry.key) + "=" +
                                     in_quotes(entry.value) + ": give " + std::string(right)};
}

Result<Duration> time_of(const Given& given, const Entry& entry) {
  const auto time = parse_time(entry.value);
  if (!time || *time <= Duration::zero()) {
    return pass(bad_entry(given, entry, "a time above 0: seconds (30), or 500ms, 30s, 5m, 1h"));
  }
  return *time;
}

Result<bool> truth_of(const Given& given, const Entry& entry) {
  const std::string text = lower(entry.value);
  for (const std::string_view yes : {"1", "true", "t", "yes", "y"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"0", "false", "f", "no", "n"}) {
    if (text == no) return false;
  }
  return pass(bad_entry(given, entry, "true or false"));
}

std::string unknown_key(const Given& given, std::string_view key) {
  std::string notice =
      given.origin + ": " + in_quotes(key) + " is no key that muster knows: it has no effect";
  const auto distance = [key](std::string_view name) { return edit_distance(key, name); };
  const auto nearest = std::ranges::min_element(kUsed, {}, distance);
  if (distance(*nearest) * 3 <= nearest->size()) {
    notice += "; did you mean " + std::string(*nearest) + "?";
  }
  return notice;
}

Result<void> apply_entry(const Given& given, const Entry& entry, Options& options) {
  const std::string origin = given.origin + " " + std::string(entry.key);
  if (entry.key == "is_host") {
    const auto truth = truth_of(given, entry);
    if (!truth) return pass(truth.error());
    options.asked.is_host = {*truth, origin};
    return {};
  }
  if (entry.key == "store_type") {
    if (entry.value == "tcp") return {};
    return pass(bad_entry(given, entry, "tcp, or leave it out: nodes meet over the network only"));
  }
  if (entry.key == "join_timeout" || entry.key == "last_call_timeout" || entry.key == "timeout") {
    const auto time = time_of(given, entry);
    if (!time) return pass(time.error());
    if (entry.key == "last_call_timeout") options.job.last_call = *time;
    if (entry.key == "join_timeout") options.asked.join_timeout = {*time, origin};
    if (entry.key == "timeout") options.asked.timeout = {*time, origin};
    return {};
  }
  const auto flag = std::ranges::find(kFlags, entry.key, &Meaningless::key);
  if (flag != kFlags.end()) {
    return fail(Errc::InvalidArgument,
                origin + " has a flag of its own: give " + std::string(flag->why));
  }
  const auto known = std::ranges::find(kMeaningless, entry.key, &Meaningless::key);
  options.notices.push_back(known == kMeaningless.end()
                                ? unknown_key(given, entry.key)
                                : origin + " has no meaning here: " + std::string(known->why));
  return {};
}

}  // namespace

Result<void> apply_rdzv_conf(const Given& given, Options& options) {
  if (trimmed(given.value).empty()) return {};
  options.asked.for_several.push_back(given.origin);
  for (const std::string_view part : split(given.value, ',')) {
    const auto equals = part.find('=');
    const Entry entry{trimmed(part.substr(0, equals)),
                      equals == std::string_view::npos ? "" : trimmed(part.substr(equals + 1))};
    if (entry.key.empty() || entry.value.empty()) {
      return fail(Errc::InvalidArgument, given.origin + ": " + in_quotes(given.value) +
                                             " is not a list of settings: give KEY=VALUE, with "
                                             "commas between them");
    }
    const auto applied = apply_entry(given, entry, options);
    if (!applied) return pass(applied.error());
  }
  return {};
}

}  // namespace muster::launcher

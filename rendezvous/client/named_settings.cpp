#include "rendezvous/client/named_settings.hpp"

#include "rendezvous/client/wire.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <functional>
#include <string_view>

namespace muster::rendezvous {
namespace {

constexpr std::int64_t kNanosPerSecond = 1'000'000'000;
constexpr std::size_t kNanoDigits = 9;

template <class Number>
bool parse(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

std::string text_of(std::uint32_t number) { return std::to_string(number); }
std::string text_of(bool is_set) { return is_set ? "yes" : "no"; }
std::string text_of(Duration duration) {
  const auto nanos = std::clamp(duration, Duration::zero(), kMaxDuration).count();
  std::string text = std::to_string(nanos / kNanosPerSecond);
  if (nanos % kNanosPerSecond != 0) {
    auto fraction = std::to_string(nanos % kNanosPerSecond + kNanosPerSecond).substr(1);
    fraction.erase(fraction.find_last_not_of('0') + 1);
    text += "." + fraction;
  }
  return text + "s";
}
std::string text_of(ScaleUp when) {
  switch (when) {
    case ScaleUp::Now:
      return "now";
    case ScaleUp::Checkpoint:
      return "checkpoint";
    case ScaleUp::Never:
      return "never";
  }
  return {};
}

bool read(std::string_view text, std::uint32_t& number) { return parse(text, number); }
bool read(std::string_view text, bool& is_set) {
  is_set = text == "yes";
  return is_set || text == "no";
}
bool read(std::string_view text, Duration& duration) {
  if (!text.ends_with('s')) return false;
  text.remove_suffix(1);
  const auto point = text.find('.');
  std::uint64_t seconds = 0;
  if (!parse(text.substr(0, point), seconds)) return false;
  std::uint64_t nanos = 0;
  if (point != std::string_view::npos) {
    std::string fraction(text.substr(point + 1));
    if (fraction.empty() || fraction.size() > kNanoDigits) return false;
    fraction.resize(kNanoDigits, '0');
    if (!parse(std::string_view(fraction), nanos)) return false;
  }
  constexpr auto kMaxSeconds = static_cast<std::uint64_t>(kMaxDuration.count() / kNanosPerSecond);
  if (seconds >= kMaxSeconds && (seconds > kMaxSeconds || nanos != 0)) return false;
  duration = std::chrono::seconds(seconds) + std::chrono::nanoseconds(nanos);
  return true;
}
bool read(std::string_view text, ScaleUp& when) {
  for (const auto each : {ScaleUp::Now, ScaleUp::Checkpoint, ScaleUp::Never}) {
    when = each;
    if (text == text_of(each)) return true;
  }
  return false;
}

template <class Value>
bool read(std::string_view text, std::optional<Value>& value) {
  return read(text, value.emplace());
}
template <class Value>
std::optional<std::string> written(const Value& value) {
  return text_of(value);
}
template <class Value>
std::optional<std::string> written(const std::optional<Value>& value) {
  return value ? std::optional(text_of(*value)) : std::nullopt;
}

struct Row {
  std::string_view name;
  std::optional<std::string> (*write)(const JobSettings&);
  bool (*read)(std::string_view, JobSettings&);
};

template <auto Member>
constexpr Row row(std::string_view name) {
  return {
      name, [](const JobSettings& settings) { return written(settings.*Member); },
      [](std::string_view text, JobSettings& settings) { return read(text, settings.*Member); }};
}

/// Names are for ever, and those of the flags where there is one.
constexpr std::array kRows{
    row<&JobSettings::min_nodes>("min-nodes"),
    row<&JobSettings::max_nodes>("max-nodes"),
    row<&JobSettings::node_step>("node-step"),
    row<&JobSettings::max_restarts>("max-restarts"),
    row<&JobSettings::lease>("lease"),
    row<&JobSettings::last_call>("last-call-timeout"),
    row<&JobSettings::join_timeout>("join-timeout"),
    row<&JobSettings::prefer>("prefer"),
    row<&JobSettings::scale_up>("scale-up"),
    row<&JobSettings::restart_backoff>("restart-backoff"),
    row<&JobSettings::store_on_server>("store-on-server"),
    row<&JobSettings::preempt_signal>("preempt-signal"),
    row<&JobSettings::preempt_deadline>("preempt-deadline"),
    row<&JobSettings::max_restarts_without_progress>("max-restarts-without-progress"),
};

}  // namespace

NamedSettings to_names(const JobSettings& settings) {
  NamedSettings named;
  for (const Row& row : kRows) {
    if (auto text = row.write(settings)) named.emplace_back(row.name, *std::move(text));
  }
  named.insert(named.end(), settings.others.begin(), settings.others.end());
  return named;
}

Result<JobSettings> from_names(const NamedSettings& named) {
  JobSettings settings;
  for (const auto& [name, value] : named) {
    const auto* const row = std::ranges::find(kRows, name, &Row::name);
    if (row == kRows.end()) {
      settings.others[name] = value;
    } else if (!row->read(value, settings)) {
      return fail(Errc::InvalidArgument,
                  "setting '" + name + "' can't have the value '" + value + "'");
    }
  }
  return settings;
}

}  // namespace muster::rendezvous

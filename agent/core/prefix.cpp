#include "agent/core/prefix.hpp"

#include "base/template_text.hpp"

#include <optional>

namespace muster::agent {
namespace {

/// Stands for the time meanwhile: no template can hold it.
constexpr char kTime = '\0';

}  // namespace

Prefix::Prefix(std::string_view text, const Facts& facts) {
  const auto whole =
      substituted(text, [&facts](std::string_view name) -> std::optional<std::string> {
        if (name == "role_name") return facts.role;
        if (name == "local_rank") return facts.local_rank;
        if (name == "rank") return facts.rank;
        if (name == "hostname") return facts.host;
        if (name == "time") return std::string{kTime};
        return std::nullopt;
      });
  around_time_.emplace_back();
  for (const char c : whole) {
    if (c == kTime) {
      around_time_.emplace_back();
    } else {
      around_time_.back() += c;
    }
  }
}

std::string Prefix::text(std::string_view time) const {
  std::string text = around_time_.front();
  for (std::size_t part = 1; part < around_time_.size(); ++part) {
    text += time;
    text += around_time_[part];
  }
  return text;
}

}  // namespace muster::agent

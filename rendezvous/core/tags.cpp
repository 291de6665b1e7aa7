#include "rendezvous/core/tags.hpp"

#include <charconv>
#include <cstdint>
#include <optional>

namespace muster::rendezvous {
namespace {

std::optional<std::uint64_t> last_number(std::string_view tag) {
  const auto digits = tag.substr(tag.rfind('.') + 1);
  std::uint64_t number = 0;
  const auto* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return number;
}

}  // namespace

bool is_restart_of(std::string_view tag, std::string_view other) {
  const auto dot = tag.rfind('.');
  if (dot == std::string_view::npos || tag.substr(0, dot) != other.substr(0, other.rfind('.')))
    return false;
  const auto later = last_number(tag);
  const auto earlier = last_number(other);
  return later && earlier && *later > *earlier;
}

}  // namespace muster::rendezvous

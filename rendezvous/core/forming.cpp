#include "rendezvous/core/forming.hpp"

#include "base/text.hpp"
#include "rendezvous/core/settings.hpp"

#include <algorithm>

namespace muster::rendezvous {

void Forming::counted(TimePoint now, const Sizes& sizes, std::size_t there) {
  if (!sizes.legal(there)) {
    enough_since_.reset();
  } else if (!enough_since_) {
    enough_since_ = now;
  }
}

std::optional<std::uint32_t> Forming::expected(const Sizes& sizes, const JobSettings& settings) {
  if (!settings.prefer || settings.last_call) return std::nullopt;
  return sizes.legal(*settings.prefer);
}

Forming::Outcome Forming::decide(TimePoint now, const Sizes& sizes, const JobSettings& settings,
                                 const Presence& presence) const {
  const auto legal = sizes.legal(presence.there);
  if (!legal) {
    return {{}, {}, count_of(sizes.smallest() - presence.there, "more node") + " needed"};
  }
  if (*legal == sizes.largest()) return {legal, {}, "all that it may have are there"};
  if (after_ == After::Stop && presence.awaited == 0)
    return {legal, {}, "all remaining nodes are there"};
  if (const auto target = expected(sizes, settings); target && *legal >= *target)
    return {legal, {}, "as many as expected are there"};

  // Without a moment from which min was there nothing can be waited for: counted() was not told
  // yet.
  const auto enough_since = enough_since_.value_or(now);
  const auto last_call = settings.last_call.value_or(kLastCall);
  auto ends = enough_since + last_call;
  std::string reason = "the last call of " + duration_text(last_call) + " is over";
  if (!settings.last_call) {
    const auto quiet = std::max(since_, last_arrival_.value_or(since_)) + kQuiet;
    if (quiet < ends) {
      ends = quiet;
      reason = "enough are there, and none came for " + duration_text(kQuiet);
    }
  }
  if (now >= ends) return {legal, {}, reason};
  return {{}, ends, "enough are there: the last call"};
}

}  // namespace muster::rendezvous

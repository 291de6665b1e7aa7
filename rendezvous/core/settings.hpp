#pragma once

#include "base/membership.hpp"
#include "rendezvous/core/sizes.hpp"

#include <optional>
#include <string>
#include <vector>

namespace muster::rendezvous {

/// A setting that two nodes of a job give differently, as its flag, with both values.
struct Difference {
  std::string setting;
  std::string first;
  std::string second;
};
[[nodiscard]] std::vector<Difference> differences(const JobSettings& first,
                                                  const JobSettings& second);

/// Why no job can run with them on a server that admits leases up to `max_lease`; nullopt: one can.
[[nodiscard]] std::optional<std::string> what_is_wrong(const JobSettings& settings,
                                                       Duration max_lease);

[[nodiscard]] Sizes sizes_of(const JobSettings& settings);

/// "10s", "1.5s", "20ms".
[[nodiscard]] std::string duration_text(Duration duration);

}  // namespace muster::rendezvous

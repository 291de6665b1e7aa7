#pragma once

#include "base/error.hpp"
#include "base/membership.hpp"

#include <string>
#include <utility>
#include <vector>

/// What every node of a job must agree on, by name and value, as it travels: so that a setting of a
/// newer node that this version does not know is compared and named as well.
namespace muster::rendezvous {

using NamedSettings = std::vector<std::pair<std::string, std::string>>;

[[nodiscard]] NamedSettings to_names(const JobSettings& settings);

/// What is not named has its default. Fails on a value that its setting can't have.
[[nodiscard]] Result<JobSettings> from_names(const NamedSettings& named);

}  // namespace muster::rendezvous

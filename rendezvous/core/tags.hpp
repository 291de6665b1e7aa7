#pragma once

#include <string_view>

namespace muster::rendezvous {

/// `tag` names a later restart of the scheduler's job that `other` names: both are
/// "job.step.restart" or the like, alike but for a higher last number.
[[nodiscard]] bool is_restart_of(std::string_view tag, std::string_view other);

}  // namespace muster::rendezvous

#pragma once

#include <cstdint>
#include <string>

namespace muster::rendezvous {

/// A round's secret, in hexadecimal: another for each seed.
[[nodiscard]] std::string round_secret(std::uint64_t seed);

}  // namespace muster::rendezvous

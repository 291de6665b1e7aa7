#pragma once

/// Exit codes that are no worker's own (protocol.md 5, docs/reference/exit-codes.md).
namespace muster {

constexpr int kOwnError = 1;  ///< Ours, or the machine's.
constexpr int kUsage = 2;
constexpr int kRequeue = 75;      ///< Worth another try.
constexpr int kNoProgress = 93;   ///< A requeue is pointless.
constexpr int kSignalBase = 128;  ///< Above it: the number of the signal that ended it.

}  // namespace muster

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

/// The page that a worker and its agent share, as bytes: docs/reference/beacon.md is the contract,
/// worker_sdk/ has the workers' side of it in C++ and in Python.
namespace muster::beacon {

constexpr std::array<char, 8> kMagic{'M', 'U', 'S', 'T', 'R', 'B', 'C', 'N'};
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kSize = 4096;        ///< Of the file. What is not named here is zero.
constexpr std::size_t kLongestPhase = 64;  ///< Bytes of a phase; what is longer is cut.

/// What the agent says. Each word means something by itself. Times are nanoseconds of
/// CLOCK_BOOTTIME.
struct AgentWords {
  std::uint64_t save_requests = 0;  ///< How often the workers were asked to save, in this round.
  std::int64_t lease_ends = 0;   ///< Unless the server is heard of before; 0: that is not in sight.
  std::uint64_t leaving = 0;     ///< 1: a machine of the job will be taken away.
  std::int64_t leaves_at = 0;    ///< Then; 0: not known.
  std::uint64_t round_over = 0;  ///< 1: the round is being stopped, the next one or the end waits.
};

/// What the worker says. Zero until it does.
struct WorkerWords {
  std::uint64_t pid = 0;  ///< Of the process that writes, as it sees itself.
  std::uint64_t step = 0;
  std::uint64_t saves = 0;     ///< Checkpoints written in this round.
  std::int64_t heartbeat = 0;  ///< When it last said anything.
  std::uint64_t save_heard =
      0;  ///< 1 + the newest save request that it has seen; 0: it never looks.
  std::uint64_t round_over_heard = 0;  ///< 1: it has seen that the round is over.
  std::uint64_t phase_size = 0;        ///< 0 while the phase changes.
  std::uint64_t reserved = 0;
  std::array<char, kLongestPhase> phase{};
};

struct Page {
  std::array<char, 8> magic{};
  std::uint64_t version = 0;
  std::array<std::uint64_t, 6> reserved{};
  AgentWords agent;
  std::array<std::uint64_t, 3> reserved_after_agent{};
  WorkerWords worker;
};

static_assert(std::is_trivially_copyable_v<Page>);
static_assert(offsetof(Page, agent) == 64);
static_assert(offsetof(Page, worker) == 128);
static_assert(offsetof(Page, worker) + offsetof(WorkerWords, phase) == 192);
static_assert(sizeof(Page) <= kSize);

}  // namespace muster::beacon

#pragma once

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster {

/// Tells the agent of muster how far this worker is, and hears what it has to say, by a page of
/// memory that both share: nothing waits, nothing throws, no call takes more than a fraction of a
/// microsecond.
///
///     muster::Beacon beacon;
///     for (std::uint64_t step = first; step < last; ++step) {
///       beacon.step(step);
///       ...
///       if (beacon.checkpoint_requested() || step % 1000 == 0) { save(); beacon.saved(); }
///     }
///
/// Where there is no agent, and in a process that is not the worker's own, every function does
/// nothing and every answer is no. The page belongs to the first process that uses it, for that
/// process's life: its children have no say, also when they inherited this object by fork. One
/// object a process; one thread at a time. This header needs C++11 and Linux, and nothing to link.
/// docs/reference/beacon.md describes the page.
class Beacon {
 public:
  /// By MUSTER_BEACON in the environment, which is read here.
  Beacon() { open(std::getenv("MUSTER_BEACON")); }
  Beacon(const Beacon&) = delete;
  Beacon& operator=(const Beacon&) = delete;
  ~Beacon() {
    if (page_ != nullptr) ::munmap(page_, kSize);
  }

  /// Whether an agent hears this process.
  bool is_there() const { return page_ != nullptr && ::getpid() == pid_; }

  /// This worker is at that step of its training.
  void step(std::uint64_t number) {
    if (!is_there()) return;
    set(kStep, number);
    beat_now();
  }
  /// At the next one.
  void step() {
    if (is_there()) step(get(kStep) + 1);
  }

  /// What this worker does from now on: "load", "train", "evaluate" ...; 64 bytes of it are told.
  void phase(const std::string& name) {
    if (!is_there()) return;
    const std::size_t size = name.size() < kLongestPhase ? name.size() : kLongestPhase;
    set(kPhaseSize, 0);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    std::memcpy(page_ + kPhase, name.data(), size);
    set(kPhaseSize, size);
    beat_now();
  }

  /// A checkpoint has been written, from which training can go on.
  void saved() {
    if (!is_there()) return;
    requests_met_ = get(kSaveRequests);
    set(kSaves, get(kSaves) + 1);
    beat_now();
  }

  /// This worker lives, though it has nothing else to tell.
  void beat() {
    if (is_there()) beat_now();
  }

  /// Whether it should save soon: a machine of the job will be taken away. Until saved().
  bool checkpoint_requested() {
    if (!is_there()) return false;
    const std::uint64_t requests = get(kSaveRequests);
    set(kSaveHeard, requests + 1);
    return requests != requests_met_;
  }

  /// Whether a machine of the job will be taken away.
  bool leaving() const { return is_there() && get(kLeaving) != 0; }

  /// Until it is; below 0: there is none, or nobody knows when.
  double seconds_left() const {
    if (!is_there() || get(kLeavesAt) == 0) return -1;
    const std::int64_t left = static_cast<std::int64_t>(get(kLeavesAt)) - now();
    return left > 0 ? static_cast<double>(left) / 1e9 : 0;
  }

  /// Whether the rendezvous is silent: where it stays so, the workers are killed without notice.
  bool lease_running_out() const {
    return is_there() && now() < static_cast<std::int64_t>(get(kLeaseEnds));
  }

  /// Whether this round of the job is being stopped: another one, or the end, waits for that.
  bool round_over() {
    if (!is_there() || get(kRoundOver) == 0) return false;
    set(kRoundOverHeard, 1);
    return true;
  }

 private:
  static constexpr std::size_t kSize = 4096;
  static constexpr std::uint64_t kVersion = 1;
  static constexpr std::size_t kLongestPhase = 64;
  // Offsets. What the agent writes:
  static constexpr std::size_t kSaveRequests = 64;
  static constexpr std::size_t kLeaseEnds = 72;
  static constexpr std::size_t kLeaving = 80;
  static constexpr std::size_t kLeavesAt = 88;
  static constexpr std::size_t kRoundOver = 96;
  // And the worker:
  static constexpr std::size_t kPid = 128;
  static constexpr std::size_t kStep = 136;
  static constexpr std::size_t kSaves = 144;
  static constexpr std::size_t kHeartbeat = 152;
  static constexpr std::size_t kSaveHeard = 160;
  static constexpr std::size_t kRoundOverHeard = 168;
  static constexpr std::size_t kPhaseSize = 176;
  static constexpr std::size_t kPhase = 192;

  static std::int64_t now() {
    timespec time{};
    ::clock_gettime(CLOCK_BOOTTIME, &time);
    return std::int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
  }

  // Each word means something by itself. The phase's bytes are written between its two sizes, the
  // fence and the release of the second keep them there.
  std::uint64_t* word(std::size_t offset) const {
    return reinterpret_cast<std::uint64_t*>(page_ + offset);
  }
  std::uint64_t get(std::size_t offset) const {
    return __atomic_load_n(word(offset), __ATOMIC_ACQUIRE);
  }
  void set(std::size_t offset, std::uint64_t value) {
    __atomic_store_n(word(offset), value, __ATOMIC_RELEASE);
  }
  void beat_now() { set(kHeartbeat, static_cast<std::uint64_t>(now())); }

  /// Makes the page ours, where there is one and it is nobody else's.
  void open(const char* path) {
    if (path == nullptr) return;
    const int file = ::open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    struct stat status{};
    void* memory = MAP_FAILED;
    if (::fstat(file, &status) == 0 && status.st_size >= static_cast<off_t>(kSize))
      memory = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (memory == MAP_FAILED) return;
    page_ = static_cast<char*>(memory);
    if (claim()) return;
    ::munmap(page_, kSize);
    page_ = nullptr;
  }

  bool claim() {
    if (std::memcmp(page_, "MUSTRBCN", 8) != 0 || get(8) != kVersion) return false;
    pid_ = ::getpid();
    std::uint64_t owner = get(kPid);
    const auto mine = static_cast<std::uint64_t>(pid_);
    const bool is_free = owner == 0 || owner == mine ||
                         (::kill(static_cast<pid_t>(owner), 0) != 0 && errno == ESRCH);
    if (!is_free || !__atomic_compare_exchange_n(word(kPid), &owner, mine, false, __ATOMIC_ACQ_REL,
                                                 __ATOMIC_RELAXED))
      return false;
    beat_now();
    return true;
  }

  char* page_ = nullptr;  // nullptr: there is none, or it is another's.
  pid_t pid_ = 0;
  std::uint64_t requests_met_ = 0;  // Requests to save that have been answered.
};

}  // namespace muster

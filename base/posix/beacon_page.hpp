#pragma once

#include "base/beacon.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/posix/fd.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace muster::posix {

/// The agent's end of one worker's beacon (base/beacon.hpp). The worker maps the file; here it is
/// read and written by calls: a worker may write any bytes into it and may cut the file short, and
/// neither does more than spoil what it says. The kernel copies aligned words whole. The file goes
/// with this object. Move-only; any thread.
class BeaconPage {
 public:
  struct Said {
    std::uint64_t step = 0;       ///< 0: it told none.
    std::uint64_t saves = 0;      ///< Checkpoints written in this round.
    std::string phase;            ///< At most beacon::kLongestPhase bytes, any.
    TimePoint at;                 ///< By the boot clock, as the worker says, but never after now.
    bool heeds_requests = false;  ///< It looks whether it should save.
  };

  /// A new file, mode 0600, in which nothing is said yet but `words`.
  [[nodiscard]] static Result<BeaconPage> create(const std::string& path,
                                                 const beacon::AgentWords& words);
  BeaconPage(BeaconPage&& other) noexcept;
  BeaconPage& operator=(BeaconPage&&) = delete;
  ~BeaconPage();

  /// nullopt: the worker has said nothing, or what it left can't be read.
  [[nodiscard]] std::optional<Said> read() const;
  /// What the agent says, all of it.
  void write(const beacon::AgentWords& words) const noexcept;

 private:
  BeaconPage(std::string path, Fd file) : path_(std::move(path)), file_(std::move(file)) {}
  std::string path_;  // Empty: moved from.
  Fd file_;
};

}  // namespace muster::posix

#pragma once

#include "base/membership.hpp"
#include "rendezvous/core/deadlines.hpp"
#include "rendezvous/core/job_view.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::rendezvous {

/// The verdicts of jobs that have ended, for nodes that come late: those of the job's launch tag,
/// its incarnations and its rounds are told (protocol.md 5). An id may stand here more than once:
/// without a tag it was free again.
class Archive {
 public:
  static constexpr Duration kKept = std::chrono::hours(1);
  static constexpr std::size_t kMost = 4096;  ///< Of more, the oldest is forgotten.

  struct Ended {
    JobView view;  ///< With the verdict, without nodes.
    std::string launch_tag;
    std::set<Incarnation> attended;
    std::optional<RoundId> last_round;
  };
  /// One that another server remembered, and told this one when it started.
  struct Kept {
    Ended ended;
    Duration age{};  ///< Since the end, then.
  };

  void keep(TimePoint now, Ended ended);
  /// The verdict that this node is late for; nullptr: none.
  [[nodiscard]] const Verdict* find(const Hello& hello) const;
  /// The newest job of this id; nullptr: none.
  [[nodiscard]] const Ended* newest(const std::string& job) const;
  [[nodiscard]] const JobView* view(const std::string& job) const;
  [[nodiscard]] std::vector<JobView> views() const;

  [[nodiscard]] std::optional<TimePoint> next_deadline() const { return deadlines_.earliest(); }
  void expire(TimePoint now);

 private:
  std::map<std::uint64_t, Ended> by_number_;  // In the order of their ends.
  std::map<std::string, std::set<std::uint64_t>> by_job_;
  Deadlines<std::uint64_t> deadlines_;
  std::uint64_t next_ = 1;

  void forget(std::uint64_t number);
};

}  // namespace muster::rendezvous

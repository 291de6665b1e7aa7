#pragma once

#include "base/ids.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::rendezvous {

/// Machines that are passed over for a while: those that were lost, or blamed for a failure, soon
/// after they had joined. Each time the while doubles. A machine that stayed longer before it
/// failed starts anew.
class Offenders {
 public:
  static constexpr Duration kProbation = std::chrono::seconds(60);  ///< "Soon" after joining.
  static constexpr Duration kFirst = std::chrono::seconds(5);
  static constexpr Duration kLongest = std::chrono::hours(1);
  /// Remembered at most; of more, the one that is free the soonest is forgotten.
  static constexpr std::size_t kMost = 4096;
  /// Told to agents, for a server that forgets, at most.
  static constexpr std::size_t kMostTold = 16;

  /// Returns for how long it is passed over from now; nullopt: it isn't.
  std::optional<Duration> blame(TimePoint now, const std::string& machine, TimePoint joined,
                                const std::string& reason);
  /// Heard from an agent, after this server's start: how long is not known any more.
  void heard_of(TimePoint now, const std::string& machine);

  struct Sentence {
    int offences = 0;
    TimePoint ends;
    std::string reason;
  };
  /// Nullptr: free.
  [[nodiscard]] const Sentence* sentence(TimePoint now, const std::string& machine) const;
  [[nodiscard]] std::vector<std::string> excluded(TimePoint now) const;

 private:
  void make_room();

  std::map<std::string, Sentence> by_machine_;
};

}  // namespace muster::rendezvous

#pragma once

#include "base/membership.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster::rendezvous {

/// One round: which node has which place in it, how far each is, what failed, and why it was
/// stopped. What follows from that is Job's to decide. Each question costs O(1).
class Round {
 public:
  struct Place {
    Incarnation incarnation;
    std::string node;  ///< Its name, for people.
    std::string machine;
    std::uint32_t slots = 1;
    Assignment assignment;
    bool acknowledged = false;
    bool started = false;
    bool succeeded = false;
    bool stopped = false;  ///< It answered the Stop.
    bool empty = false;
    bool gone = false;
    std::optional<std::uint32_t> saving;   ///< Workers that have not saved yet; nullopt: unknown.
    std::vector<WorkerProgress> progress;  ///< As reported last; empty: no worker told any.
    TimePoint progress_at;                 ///< Then.

    [[nodiscard]] bool answered() const { return stopped || over(); }
    [[nodiscard]] bool over() const { return empty || gone; }
  };
  /// Why it was stopped, by what it means for what its workers do from then on.
  enum class StoppedFor {
    Failure,  ///< A worker failed or a node was lost: the first cause is searched for.
    Change,   ///< The membership changes.
    Leaving,  ///< A launcher was signalled, or an operator ends the job: no failure counts any
              ///< more.
  };

  explicit Round(RoundId id) : id_(id) {}

  [[nodiscard]] RoundId id() const { return id_; }
  Place& add(Place place);
  [[nodiscard]] Place* find(const Incarnation& incarnation);
  [[nodiscard]] const Place* find(const Incarnation& incarnation) const;
  [[nodiscard]] const std::vector<Place>& places() const { return places_; }
  [[nodiscard]] Place* with_node_rank(NodeRank rank);

  void note_succeeded(Place& place);
  void note_stopped(Place& place);
  void note_empty(Place& place);
  void note_gone(Place& place);
  /// At most kMostNamed.
  [[nodiscard]] const std::vector<Incarnation>& gone() const { return gone_; }
  void note_saving(Place& place, std::uint32_t left);

  /// What a place's beacons say. True: some worker has saved since they were last heard of.
  bool note_progress(TimePoint now, Place& place, const std::vector<WorkerProgress>& workers);
  /// Some worker has told how far it is.
  [[nodiscard]] bool has_progress() const { return has_progress_; }
  /// The highest step that any worker has told, by its beacon or as it failed; 0: none did.
  [[nodiscard]] std::uint64_t highest_step() const { return highest_step_; }

  /// Workers of the round, and those of them that are not known to have saved.
  [[nodiscard]] std::uint32_t workers() const { return workers_; }
  [[nodiscard]] std::uint32_t still_saving() const { return still_saving_; }

  [[nodiscard]] bool all_answered() const { return answered_ == places_.size(); }
  [[nodiscard]] bool all_over() const { return over_ == places_.size(); }
  [[nodiscard]] bool all_succeeded() const { return succeeded_ == places_.size(); }
  [[nodiscard]] bool any_succeeded() const { return succeeded_ > 0; }

  /// False: it is known already. Of many, those that a verdict can name are kept, the first cause
  /// among them.
  bool add_failure(const WorkerFailure& failure);
  [[nodiscard]] const std::vector<WorkerFailure>& failures() const { return failures_; }
  /// Workers were asked to save or to leave, for no failure: whoever lost a peer, or will, is a
  /// victim of that.
  void excuse();
  [[nodiscard]] bool is_excused() const { return excused_; }
  void add_victims(const std::vector<Victim>& victims);
  [[nodiscard]] const std::vector<Victim>& victims() const { return victims_; }

  void stop(Stop stop, StoppedFor why);
  /// The job will end, whatever its workers do from now on; a cause that is searched for already
  /// still is.
  void count_no_failure_any_more() {
    if (stopped_for_ == StoppedFor::Change) stopped_for_ = StoppedFor::Leaving;
  }
  [[nodiscard]] const std::optional<Stop>& stop() const { return stop_; }
  [[nodiscard]] StoppedFor stopped_for() const { return stopped_for_; }

  /// Once every node has answered the Stop, or is gone: the first cause stands, but for one that
  /// only reports a peer's loss, which gives way to what is seen until all is over.
  void decide_cause();
  [[nodiscard]] std::optional<std::size_t> cause() const { return cause_; }

 private:
  /// Keeps the counts right over a change of a place.
  template <class Change>
  void change(Place& place, Change change);
  void count(const Place& place, std::uint32_t by);

  RoundId id_;
  std::vector<Place> places_;
  std::map<Incarnation, std::size_t> by_incarnation_;
  std::uint32_t answered_ = 0;
  std::uint32_t over_ = 0;
  std::uint32_t succeeded_ = 0;
  std::uint32_t workers_ = 0;
  std::uint32_t still_saving_ = 0;
  std::vector<WorkerFailure> failures_;              // In order of arrival.
  std::set<std::pair<bool, std::uint32_t>> failed_;  // A node, its rank; else a worker's.
  std::vector<Victim> victims_;                      // At most kMostVictims.
  std::vector<Incarnation> gone_;
  std::optional<Stop> stop_;
  StoppedFor stopped_for_ = StoppedFor::Failure;
  bool excused_ = false;
  bool has_progress_ = false;
  std::uint64_t highest_step_ = 0;
  std::optional<std::size_t> cause_;  // Of failures_.
};

}  // namespace muster::rendezvous

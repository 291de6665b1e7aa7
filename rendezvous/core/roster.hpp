#pragma once

#include "base/membership.hpp"
#include "rendezvous/core/deadlines.hpp"
#include "rendezvous/core/job_view.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::rendezvous {

/// Why a node will be in no later round of its job.
struct Departure {
  int signal = 0;          ///< That its launcher got; 0: none.
  bool preempted = false;  ///< Others go on without it whatever the signal.
  bool drained = false;    ///< By an operator.
  std::string reason;
  bool at_once = false;  ///< Without staying for the sake of others.

  /// The user wants the launcher to end, and there is no more to it.
  [[nodiscard]] bool is_plain() const { return signal != 0 && !preempted && !drained; }
};

/// An agent that attends a job.
struct Member {
  std::uint64_t number = 0;  ///< In the order of arrival.
  Hello hello;               ///< The newest, but for what it held.
  std::optional<LinkId> link;
  std::string peer;  ///< The connection's ends, numeric, as the server sees them.
  std::string local;
  std::uint64_t ping = 0;         ///< The newest heard, and answered.
  TimePoint heard;                ///< When that was.
  std::uint64_t memory_used = 0;  ///< As the newest ping said it.
  std::uint64_t memory_limit = 0;
  TimePoint joined;
  std::optional<RoundId> holds;  ///< A round that it was given and is not known to be empty of.
  bool served = false;           ///< It was in a round.
  bool there = true;
  std::optional<Departure> departure;
  bool repeats_leaving = false;  ///< It said Hello again: that it leaves comes again as well.
  bool released = false;         ///< It was told to leave, before the job's end.
  bool stuck = false;            ///< Processes of it could not be killed.
  bool contends = false;         ///< Another living node has the node rank that it was given.
  bool cooling = false;          ///< Its machine is passed over for a while.
  bool unreachable = false;  ///< While it cools: it could not reach the store, or the store's node.
  bool verdict_seen = false;
  bool dismissed = false;
  std::string told;  ///< The last Waiting.
  Keep kept;         ///< What it holds of an operator's wishes.
};

/// "node h1"; "this node" where a lone one has no name.
[[nodiscard]] std::string called(const Hello& hello);

/// "; probably killed for memory as a whole: 7.9 of 8.0 GiB were in use", of a node that fell
/// silent or was killed, where its last ping told of so little left; else empty.
[[nodiscard]] std::string memory_note(const Member& member);

/// The agents that attend a job, with their leases, and how many of them are in which state. A ping
/// costs the logarithm of their number, a count nothing.
///
/// Whoever changes a member does it through change(), which keeps the counts right.
class Roster {
 public:
  explicit Roster(Duration lease) : lease_(lease) {}

  Member& add(TimePoint now, Hello hello);
  void remove(const Incarnation& incarnation);
  [[nodiscard]] Member* find(const Incarnation& incarnation);
  [[nodiscard]] const std::map<Incarnation, Member>& members() const { return members_; }
  [[nodiscard]] std::map<Incarnation, Member>& members() { return members_; }
  [[nodiscard]] std::size_t size() const { return members_.size(); }

  template <class Change>
  void change(Member& member, Change change) {
    count(member, kMinusOne);
    change(member);
    count(member, 1);
  }

  /// It was answered now.
  void answered(TimePoint now, Member& member);
  /// When somebody falls silent, or may be given up; nullopt: never.
  [[nodiscard]] std::optional<TimePoint> next_deadline() const { return deadlines_.earliest(); }
  /// Marks those that fell silent; returns those whose ranks may be given away.
  [[nodiscard]] std::vector<Incarnation> expire(TimePoint now);

  /// May be in a round to come, and in the next one if there is no other way.
  [[nodiscard]] static bool is_candidate(const Member& member) {
    return !member.departure && !member.stuck && !member.contends && !member.unreachable;
  }

  struct Counts {
    std::size_t ready = 0;       ///< Candidates in no round, there, and not cooling.
    std::size_t cooling = 0;     ///< Likewise, but cooling.
    std::size_t awaited = 0;     ///< Candidates in no round that were in one, and are silent.
    std::size_t candidates = 0;  ///< All of them: there or silent, in a round or not.
    std::size_t holders = 0;     ///< Of any round.
    std::size_t silent_holders = 0;
    std::size_t unseen = 0;  ///< That have not seen the verdict.
    std::size_t hosts = 0;   ///< With the server in their process: one, if any.
    std::size_t guests = 0;  ///< Connected, and not the node that hosts the server.
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

  [[nodiscard]] Duration lease() const { return lease_; }
  /// After so long without an answer an agent's ranks may be given away.
  [[nodiscard]] Duration give_away_after() const { return lease_ + lease_ / 4; }

 private:
  static constexpr std::size_t kMinusOne = ~std::size_t{0};  // Unsigned numbers wrap around.
  void count(const Member& member, std::size_t by);

  Duration lease_;
  std::map<Incarnation, Member> members_;
  std::map<std::uint64_t, Member*> by_number_;
  Deadlines<std::uint64_t> deadlines_;
  std::uint64_t next_number_ = 1;
  Counts counts_;
};

}  // namespace muster::rendezvous

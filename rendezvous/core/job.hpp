#pragma once

#include "base/membership.hpp"
#include "rendezvous/core/actions.hpp"
#include "rendezvous/core/claims.hpp"
#include "rendezvous/core/deadlines.hpp"
#include "rendezvous/core/epochs.hpp"
#include "rendezvous/core/forming.hpp"
#include "rendezvous/core/job_view.hpp"
#include "rendezvous/core/offenders.hpp"
#include "rendezvous/core/ranking.hpp"
#include "rendezvous/core/recovery.hpp"
#include "rendezvous/core/roster.hpp"
#include "rendezvous/core/round.hpp"
#include "rendezvous/core/sizes.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace muster::rendezvous {

// clang-format off
/// One job's membership (protocol.md 1, 2, 4, 5, 6): who attends it, the running round, what is charged, and
/// how it ends.
///
///   Gathering --a forming condition holds, nobody holds a round, recovery allows it--> Running, the next round
///   Gathering --the join times out, or a launcher was signalled and too few remain--> Told
///   Running   --all workers of all nodes exited 0--> Draining
///   Running   --a worker failed, a node was lost, cannot reach the store, leaves or is drained; scale-up, restart,
///               sizes, an operator ends the job--> Stopping: a Stop to every node of the round
///   Draining  --a worker failed after all--> Stopping
///   Draining  --every node is empty or gone--> Told: success
///   Stopping  --every node answered or is gone--> Stopping: the first cause stands
///   Stopping  --every agent that holds any round is empty or gone--> Gathering (the failure charged once, what a
///               lost node explains or a change brought free), or Told: budget spent, nothing ever started, ordered
///   Told      --all have seen the verdict, or 2 s--> dismissed; the node that hosts the server when the others left
///   Told      --all left--> Over
///
/// Beside the phases: a preemption notice or a drain makes Running prepare (all workers save) before it stops. In
/// recovery, rounds that agents report are taken up: the highest goes on, holders of others are stopped. A member that
/// leaves before the end is told a verdict of its own.
///
/// The agents are the journal: what is not held here can be learned again from their Hellos.
///
/// Pure: the same calls give the same actions. Each call appends to what take_actions() returns. A ping costs the
/// logarithm of the number of agents, whatever forms or ends a round is linear in it.
// clang-format on
class Job {
 public:
  /// What the jobs of one server share.
  struct Common {
    explicit Common(std::uint32_t epoch_bits) : epochs(epoch_bits) {}
    Epochs epochs;
    TimePoint recovery_ends;
    bool first_here = false;
    bool embedded = false;
    std::uint64_t seed = 0;  ///< Of the next round's secret.
    std::string version;
  };

  /// Leavers within this are one event: the next round waits for it.
  static constexpr Duration kLeaveWindow = std::chrono::seconds(1);
  static constexpr Duration kScaleUpFull = std::chrono::milliseconds(500);  ///< Max is reached.
  static constexpr Duration kScaleUpQuiet = std::chrono::seconds(5);
  /// For the verdict to be acknowledged; then for those dismissed to leave.
  static constexpr Duration kVerdictPatience = std::chrono::seconds(2);
  /// Between two Waitings to all, in a job of more than kFewMembers.
  static constexpr Duration kTellInterval = std::chrono::seconds(1);
  static constexpr std::size_t kFewMembers = 16;
  /// To more than these a verdict carries the end of its evidence only.
  static constexpr std::size_t kMostWholeVerdicts = 64;
  /// Incarnations that are remembered as its own when it has ended; of more, the last to come are
  /// not.
  static constexpr std::size_t kMostAttended = 65536;
  /// Addresses that a round's store turned away and that are told; of more, the others are not.
  static constexpr std::size_t kMostRefused = 16;
  /// Incarnations whose ranks were given away are remembered at most; of more, the oldest is
  /// forgotten.
  static constexpr std::size_t kMostGone = 65536;

  /// `common` outlives the job.
  Job(std::string id, const Hello& first, TimePoint now, Common& common);

  /// Why this node can't attend; nullopt: it can.
  [[nodiscard]] std::optional<Refusal> refusal(const Hello& hello) const;

  struct Greeting {
    LinkId link;
    Hello hello;
    std::string peer;
    std::string local;
  };
  /// Not refused.
  void greet(TimePoint now, Greeting greeting);
  void hear(TimePoint now, LinkId link, const Incarnation& incarnation,
            const AgentMessage& message);
  void hang_up(TimePoint now, LinkId link, const Incarnation& incarnation);
  /// An agent is gone for good, by its farewell.
  void part(TimePoint now, const Incarnation& incarnation, const Farewell& farewell);
  void command(TimePoint now, CommandId id, const Command& command);
  /// The server goes, and comes back no more: whoever attends is told to end.
  void abandon(TimePoint now, const std::string& reason);
  /// The store that the server opened for it turned this address away.
  void turned_away(const std::string& address);
  void tick(TimePoint now);

  [[nodiscard]] std::vector<action::Action> take_actions();
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;
  [[nodiscard]] JobView view(TimePoint now) const;

  [[nodiscard]] const std::string& launch_tag() const { return launch_tag_; }
  [[nodiscard]] std::size_t members() const { return roster_.size(); }
  [[nodiscard]] bool knows(const Incarnation& incarnation) const;
  [[nodiscard]] const std::optional<Verdict>& verdict() const { return verdict_; }
  /// It has its verdict, and everybody left; or nobody is left who could bring it to one.
  [[nodiscard]] bool is_over() const { return std::holds_alternative<Over>(phase_); }
  /// All incarnations that attended it, for late nodes.
  [[nodiscard]] const std::set<Incarnation>& attended() const { return attended_; }
  [[nodiscard]] std::optional<RoundId> last_round() const { return last_round_; }

 private:
  struct Gathering {
    Forming forming;
  };
  /// All workers save, before nodes leave.
  struct Preparing {
    TimePoint deadline;
    std::string reason;
  };
  struct Running {
    std::optional<Preparing> preparing;
    std::optional<TimePoint> spare_came;  ///< The last candidate for a larger round.
    std::optional<TimePoint> saved;       ///< A worker, last.
  };
  struct Draining {};
  struct Stopping {};
  struct Told {
    std::optional<TimePoint> patience_ends;  ///< nullopt: over.
    bool dismissed = false;                  ///< All but the server's own node.
  };
  struct Over {};
  using Phase = std::variant<Gathering, Running, Draining, Stopping, Told, Over>;

  /// An agent whose ranks were given away, or that said farewell.
  struct Gone {
    bool for_good = false;             ///< By its farewell.
    std::optional<Greeting> greeting;  ///< The newest since: taken in once it is empty.
  };

  // job.cpp: events in.
  void welcome(TimePoint now, Member& member);
  void answer(TimePoint now, Member& member);
  void ping(TimePoint now, Member& member, const Ping& ping);
  void hear_of_gone(TimePoint now, LinkId link, Gone& gone, const AgentMessage& message);
  void on(TimePoint now, Member& member, const Hello& hello);
  void on(TimePoint now, Member& member, const Acknowledged& report);
  void on(TimePoint now, Member& member, const Unreachable& report);
  void on(TimePoint now, Member& member, const Started& report);
  void on(TimePoint now, Member& member, const Failed& report);
  void on(TimePoint now, Member& member, const Succeeded& report);
  void on(TimePoint now, Member& member, const Stopped& report);
  void on(TimePoint now, Member& member, const Empty& report);
  void on(TimePoint now, Member& member, const Stuck& report);
  void on(TimePoint now, Member& member, const Leaving& report);
  void on(TimePoint now, Member& member, const VerdictSeen& report);
  void on(TimePoint now, Member& member, const Notice& report);
  void on(TimePoint now, Member& member, const Saving& report);
  void on(TimePoint now, Member& member, const StoreRefused& report);
  void on(TimePoint now, Member& member, const Progress& report);
  void tell_turned_away(const std::string& address, const Member* host);
  [[nodiscard]] bool was_asked_to_end(const Round::Place& place,
                                      const WorkerFailure& failure) const;
  /// The member's place in the standing round, when the report is of it.
  Round::Place* place_of(const Member& member, RoundId round);
  void remember_gone(const Incarnation& incarnation, Gone gone);
  void remove(TimePoint now, Incarnation incarnation, const std::string& how, bool for_good);
  void lose_unseen(TimePoint now, const Incarnation& incarnation, const std::string& how);
  void empty(TimePoint now, Member& member, Round::Place& place);
  void fence(TimePoint now, Member& member, Round::Place& place, const std::string& how);

  // job_held.cpp: what agents bring along.
  void learn(TimePoint now, Member& member, const Held& held);
  void learn_wishes(Member& member, const Keep& kept);
  void resume(TimePoint now, Member& member, const Held& held);
  void say_what_stands(TimePoint now, const Member& member);
  void bear_witness(TimePoint now, Member& member, const Held& held);
  void note_unseen(TimePoint now);
  void take_up(TimePoint now, Member& member, const Held& held);
  void apply(TimePoint now, Member& member, Round::Place& place, const Held& held);
  void stop_stray(TimePoint now, Member& member, RoundId round);
  [[nodiscard]] bool in_recovery(TimePoint now) const;
  [[nodiscard]] bool recovery_allows(TimePoint now) const;

  // job_rounds.cpp: the phases.
  void advance(TimePoint now);
  bool advance_once(TimePoint now);
  bool gather(TimePoint now, Gathering& gathering);
  bool run(TimePoint now, Running& running);
  bool end_round(TimePoint now);
  void end_recovery(TimePoint now);
  void form(TimePoint now, std::uint32_t size, const std::string& reason);
  std::vector<Member*> choose(std::uint32_t size);
  void stop_round(TimePoint now, const std::string& reason, Round::StoppedFor why);
  void send_stop(const Member& member, const Round::Place& place);
  void conclude(TimePoint now);
  void judge_progress(const Round& round);
  void begin_gathering(TimePoint now, Forming::After after);
  [[nodiscard]] Presence presence() const;
  [[nodiscard]] std::optional<TimePoint> scale_up_at(const Running& running) const;
  [[nodiscard]] std::optional<TimePoint> phase_deadline() const;
  [[nodiscard]] TimePoint join_deadline(const Gathering& gathering) const;

  // job_departures.cpp: who leaves, before the end and at it.
  void depart(TimePoint now, Member& member, Departure departure, Duration left);
  void prepare(TimePoint now, const std::string& reason, Duration left);
  [[nodiscard]] Order prepare_order(TimePoint now, const Preparing& preparing,
                                    const Member& member) const;
  void release(TimePoint now, Member& member);
  [[nodiscard]] Verdict own_verdict(const Member& member) const;
  void release_leavers(TimePoint now);
  [[nodiscard]] std::optional<Verdict> leavers_verdict() const;
  bool end_if_too_few(TimePoint now);
  bool end_if_it_must(TimePoint now, const Round& round);
  [[nodiscard]] bool is_fruitless() const;
  [[nodiscard]] std::vector<Incarnation> unreachable_nodes(const Round& round) const;
  void exclude_unreachable(TimePoint now, const Round& round);
  [[nodiscard]] Verdict with_stuck(Verdict verdict) const;
  void end(TimePoint now, Verdict verdict);
  void send_verdict(Member& member);
  bool dismiss(TimePoint now, Told& told);
  [[nodiscard]] bool may_restart() const;

  // job_commands.cpp
  Result<std::string> carry_out(TimePoint now, const DrainNode& command);
  Result<std::string> carry_out(TimePoint now, const RestartJob& command);
  Result<std::string> carry_out(TimePoint now, const StopJob& command);
  Result<std::string> carry_out(TimePoint now, const SetSizes& command);
  void entrust(Member& member);
  void entrust_all();
  [[nodiscard]] std::optional<std::string> what_is_wrong_with(const Sizes& sizes) const;
  [[nodiscard]] static Verdict operators_end();
  [[nodiscard]] std::optional<Error> staleness(const std::optional<RoundId>& round) const;
  Result<Member*> find_node(const std::string& node);

  // job_words.cpp: what people are told.
  void send(const Member& member, ServerMessage message);
  void order(const Member& member, Order order);
  void note(action::Note::Level level, std::string text);
  void note(std::string text);
  void tell_all(TimePoint now);
  void tell(TimePoint now, Member& member);
  void changed(TimePoint now);
  [[nodiscard]] std::string waiting_text(TimePoint now, const Member& member) const;
  [[nodiscard]] bool waits_for_older_nodes(TimePoint now) const;
  [[nodiscard]] std::string gathering_text(TimePoint now) const;
  [[nodiscard]] std::string countdown(TimePoint now) const;
  [[nodiscard]] std::string there_text() const;
  [[nodiscard]] std::string scale_up_text() const;
  [[nodiscard]] std::string phase_text(TimePoint now) const;
  [[nodiscard]] std::string state_of(TimePoint now, const Member& member) const;

  // job_places.cpp: addresses and claims.
  void note_server_address(const Member& member);
  [[nodiscard]] std::string address_of(const Member& member) const;
  [[nodiscard]] Endpoint master_of(const Member& member, std::size_t nodes) const;
  [[nodiscard]] std::vector<std::string> admitted(const std::vector<Member*>& members) const;
  void claim(TimePoint now, Member& member);
  void free_claim(TimePoint now, Member& member);
  void settle_claims(TimePoint now);
  void refuse_claim(TimePoint now, const Member& first, Member& second);
  void remember_places(const Round& round);
  [[nodiscard]] Incarnation round_member(const Round& round, NodeRank node_rank) const;
  void blame(TimePoint now, const std::string& machine, TimePoint joined,
             const std::string& reason);
  void cool(TimePoint now, const std::string& machine);

  std::string id_;
  std::string launch_tag_;
  JobSettings settings_;
  std::string settings_of_;  // The node that set them, for people.
  Sizes sizes_;
  bool sizes_by_hand_ = false;
  Common& common_;

  Phase phase_;
  Roster roster_;
  std::map<Incarnation, Gone> gone_;
  std::deque<Incarnation> gone_in_order_;
  std::set<Incarnation> attended_;
  std::map<std::string, std::set<Incarnation>> by_machine_;
  Claims claims_;
  std::optional<TimePoint> settle_claims_at_;
  Offenders offenders_;
  Deadlines<std::string> cooling_;  // By machine: when they are free again.
  std::vector<Incarnation> leavers_;
  std::optional<TimePoint> leaving_since_;  // The first of this event.

  std::optional<Round> round_;  // In Running, Draining, Stopping.
  bool recovered_ = false;      // It was learned from its members.
  bool formed_ = false;         // A round was formed by this server.
  bool continued_ = false;      // It ran before this server started.
  bool master_up_ = false;
  std::vector<std::string> unreachable_;       // What could not be reached in this round.
  std::vector<Incarnation> unreachable_from_;  // By whom.
  std::set<std::string> refused_;              // Addresses, by this round's store.
  bool any_stuck_ = false;                     // In this round.
  std::vector<int> stuck_pids_;
  std::vector<PastPlace> past_;
  std::optional<Recovery> recovery_;
  std::optional<Verdict> ordered_end_;         // As soon as the round is over.
  std::optional<WorkerFailure> last_loss_;     // A node's, since the last round ran.
  std::optional<TimePoint> not_before_;        // The next round: back-off after a failure.
  std::optional<TimePoint> forming_deadline_;  // Time alone may form it then.
  TimePoint deserted_since_;                   // At the earliest.

  std::uint64_t number_ = 0;  // Of the newest round.
  std::uint32_t attempts_ = 0;
  std::uint32_t restarts_ = 0;
  std::uint64_t best_step_ = 0;  // That any worker has told in a round before.
  std::uint32_t fruitless_ = 0;  // Attempts in a row that failed since that was last exceeded.
  bool any_started_ = false;
  std::optional<RoundId> last_round_;
  RoundId concluded_;  // The highest round whose end has been dealt with.
  std::optional<Verdict> verdict_;
  std::string server_address_;  // As peers on other machines see it.

  std::optional<TimePoint> tell_at_;
  TimePoint told_at_;
  std::vector<action::Action> actions_;
};

}  // namespace muster::rendezvous

#pragma once

#include "base/membership.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace muster::agent {

// clang-format off
/// An agent's side of membership (protocol.md 1 to 6): which connection speaks for it, its lease, which
/// orders count, what is said again after a break. Its clock is CLOCK_BOOTTIME, read before anything is
/// sent; `now` is that.
///
///   Joining  --Welcome--> Attending
///   Joining  --Refusal, or join_timeout without a Welcome--> Over (the refusal's code, or 75)
///   Joining  --the user ends the launcher--> Over (128 + signal)
///   Attending --half the lease without an answer--> Attending, dialling in parallel; HalfLease to the workers
///   Attending --the lease ends, or "gone", while it holds a round--> Fenced: the tree is killed at once, no grace
///   Fenced   --the round's end is reported (Empty, Stuck)--> Attending anew, by a new Hello that holds it as empty
///   Attending --Verdict--> Leaving: acknowledged, and Over when dismissed, 2 s after it while the server answers, or
///                          1.25 L + 2 s after it where the server does not
///   Attending --Dismissal without a verdict, nothing held--> Over: this node has left, the job goes on
///   Attending --the user ends the launcher, nothing is held, and the server is silent--> Over (128 + signal)
///   Attending, Fenced --no server for 1.25 L + join_timeout--> Over (75); an embedded one: 1.25 L + 60 s at most
///
/// A round is held from its Assignment until its Empty or Stuck was reported. The agent never leaves while
/// it holds one: where it must, the tree is fenced first.
///
/// The connection of the newest Hello is the voice: pings and reports go there, and orders are taken from
/// there only. One that it replaced may still bring answers to pings, until the voice is answered itself.
///
/// Pure: the same calls give the same actions.
// clang-format on
class Attendee {
 public:
  /// For a server that goes with its node: beyond the lease, whoever starts that again has so long.
  static constexpr Duration kEmbeddedPatience = std::chrono::seconds(60);

  /// A connection of this agent. Never used twice.
  using Line = Strong<struct LineTag, std::uint64_t>;

  struct Settings {
    Hello hello;             ///< As to be sent first; `held` and `ping` are filled in here.
    std::string server;      ///< Where it is dialled, for messages.
    std::uint64_t seed = 0;  ///< Of the jitter.
  };

  /// Pings are this many to a lease.
  static constexpr int kPingsPerLease = 5;
  /// For so many leases it is known when a ping was sent. An older answer renews nothing any more.
  static constexpr int kPingsRemembered = 2;
  /// Between two attempts to dial at most L divided by this.
  static constexpr int kBackoffsPerLease = 10;
  /// The first repetition of a dial waits about so long, each further one twice as long.
  static constexpr Duration kFirstBackoff = std::chrono::milliseconds(10);
  /// Nor does any wait longer than this, however long the lease.
  static constexpr Duration kLongestBackoff = std::chrono::seconds(1);
  /// After a verdict, an agent whose server answers waits so long for the others to hear it too.
  static constexpr Duration kVerdictPatience = std::chrono::seconds(2);

  /// The connection stands, the server has shown that it is one, and nothing was said yet.
  struct Connected {
    Line line;
  };
  struct Dropped {  ///< Or could not be had.
    Line line;
    std::string why;
  };
  struct Received {
    Line line;
    ServerMessage message;
  };
  struct Reported {  ///< Of the worker group, and of the user: everything but Hello.
    Report report;
  };
  /// What the page said had passed already when a Renew was to be written on it: the keeper has
  /// killed.
  struct Lapsed {};
  struct Ticked {};
  using Event = std::variant<Connected, Dropped, Received, Reported, Lapsed, Ticked>;

  struct Dial {
    Line line;
  };  ///< Answer with Connected or Dropped, unless it is hung up before.
  struct HangUp {
    Line line;
  };  ///< Nothing more is heard of it.
  struct Transmit {
    Line line;
    AgentMessage message;
  };
  /// The lease ends then. To be on the keeper's page before anything else is done. Where a round is
  /// held and the page's end has passed meanwhile, it is not written: answer with Lapsed.
  struct Renew {
    TimePoint ends;
  };
  struct HalfLease {};  ///< Over: the workers should know (beacon).
  struct Fence {        ///< The lease is over, or the ranks were given away: kill the tree at once.
    std::string reason;
  };
  struct Deliver {  ///< To the worker group, in this order. Never a Verdict: it comes with Leave.
    Order order;
  };
  struct Say {  ///< For the log: whom we wait for, a server that was lost, and came back.
    std::string text;
  };
  /// The agent's work is done. Nothing follows.
  struct Leave {
    std::optional<Verdict> verdict;  ///< nullopt: without one, `message` says why.
    int exit_code = 0;               ///< Where there is no verdict: 75, or the refusal's.
    std::string message;
  };
  using Action = std::variant<Dial, HangUp, Transmit, Renew, HalfLease, Fence, Deliver, Say, Leave>;

  explicit Attendee(Settings settings);
  [[nodiscard]] std::vector<Action> start(TimePoint now);  ///< Dials.
  [[nodiscard]] std::vector<Action> step(TimePoint now, const Event& event);
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

  /// The round whose workers may be alive here, for the farewell.
  [[nodiscard]] std::optional<RoundId> holds() const;

 private:
  /// A ping or a Hello that was sent.
  struct Asked {
    std::uint64_t number;
    TimePoint at;
  };
  /// The verdict, and from when it was known.
  struct Ended {
    Verdict verdict;
    TimePoint at;
  };

  void on(TimePoint now, const Connected& connected);
  void on(TimePoint now, const Dropped& dropped);
  void on(TimePoint now, const Received& received);
  void on(TimePoint now, const Reported& reported);
  void on(TimePoint now, const Lapsed& lapsed);
  void on(TimePoint now, const Ticked& ticked);

  void hear(TimePoint now, Line line, const Welcome& welcome);
  void hear(TimePoint now, Line line, const Refusal& refusal);
  void hear(TimePoint now, Line line, const Pong& pong);
  void hear(TimePoint now, Line line, const Directive& directive);
  void hear(TimePoint now, Line line, const Waiting& waiting);
  void hear(TimePoint now, Line line, const Dismissal& dismissal);

  void take(TimePoint now, const Assignment& assignment);
  void take(TimePoint now, const Stop& stop);
  void take(TimePoint now, const Verdict& verdict);
  void take(TimePoint now, const Prepare& prepare);
  void take(TimePoint now, const MasterUp& up);
  void take(TimePoint now, const Keep& keep);

  void dial();
  void redial_after_failure(TimePoint now);
  void hang_up(std::optional<Line>& line);
  void greet(TimePoint now, Line line);
  void transmit(AgentMessage message);
  void report_trouble(const std::string& why);
  void heard_from_server(TimePoint now);
  void say(std::string text) { actions_.emplace_back(Say{std::move(text)}); }

  std::uint64_t ask(TimePoint now);
  void ping(TimePoint now);
  void keep_in_touch(TimePoint now);
  void stop_unheard();
  std::optional<TimePoint> sent_at(std::uint64_t number) const;

  bool lease_lives(TimePoint now) const { return lease_ends_ && now < *lease_ends_; }
  void renew(TimePoint now);
  void see_whether_the_lease_ended(TimePoint now);
  void end_lease();
  void hear_that_we_are_gone(TimePoint now);
  void fence(const std::string& reason);

  void remember(const Report& report);
  void round_ended(TimePoint now);

  std::optional<TimePoint> leaves_at() const;
  void leave_when_due(TimePoint now);
  void part_for_lack_of_a_server(TimePoint now);
  void part(Leave leave);
  void leave(Leave leave);
  Leave leave_by_signal() const;
  std::uint64_t random();

  Settings settings_;
  Duration lease_;
  std::uint64_t random_state_;

  // Connections. At most three: what is dialled, the voice, and the voice before it.
  std::uint64_t next_line_ = 1;
  std::optional<Line> dialled_;
  std::optional<Line> voice_;
  std::optional<Line> former_;
  std::uint64_t voice_hello_ = 0;  // The number of the Hello on it.
  std::optional<TimePoint> redial_at_;
  int failed_dials_ = 0;      // In a row.
  std::string trouble_;       // Why the newest connection failed; for messages.
  bool server_lost_ = false;  // And said so.

  // Pings.
  std::uint64_t next_ping_ = 1;
  std::vector<Asked> asked_;       // Oldest first; those of the last kPingsRemembered leases.
  TimePoint ping_at_;              // The next one's time.
  std::optional<Asked> answered_;  // The newest that was.
  std::optional<TimePoint> lease_ends_;
  bool half_said_ = false;
  TimePoint quiet_at_;  // Half a lease after the newest Hello or answered ping: dial in parallel.

  // What is held, and what was said of it.
  Held held_;
  bool blameless_ = false;  // Its Stop was of no failure.
  bool fenced_ = false;
  std::vector<Report> said_;  // Since the newest Assignment, beside what is held.
  std::optional<Leaving> leaving_;
  bool stops_unheard_ = false;  // This round, for its sake.
  struct Noticed {
    Notice notice;
    TimePoint at;
  };
  std::optional<Noticed> noticed_;

  // The end.
  TimePoint started_;
  TimePoint heard_;  // The newest sign of a server.
  bool welcomed_ = false;
  Duration patience_{};  // With a server that is not heard of, beyond the lease.
  std::string waiting_;  // What the server told last.
  std::optional<Ended> ended_;
  bool dismissed_ = false;
  bool verdict_patience_over_ = false;
  std::optional<std::uint64_t> last_ping_;  // The first one after that.
  std::optional<Leave> parting_;            // As soon as nothing is held.
  bool over_ = false;

  std::vector<Action> actions_;  // Of the step under way.
};

}  // namespace muster::agent

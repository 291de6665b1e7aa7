#pragma once

#include "base/error.hpp"
#include "base/membership.hpp"
#include "rendezvous/core/actions.hpp"
#include "rendezvous/core/archive.hpp"
#include "rendezvous/core/job.hpp"
#include "rendezvous/core/job_view.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace muster::rendezvous {

/// All jobs of one server: which connection speaks for which incarnation of which job, recovery
/// after a start, verdicts that late nodes are told, the limits. What happens within a job is
/// Job's.
///
/// Pure: the same calls give the same actions. A ping costs no more than the logarithm of the
/// number of agents, and so does finding the next deadline.
class Rendezvous {
 public:
  struct Limits {
    std::size_t jobs = 1000;     ///< A Hello for one more is refused.
    std::size_t nodes = 20000;   ///< Of all jobs together. Likewise.
    std::size_t name = 512;      ///< Bytes of a job's id, a tag, a machine key, a name. Likewise.
    std::uint32_t slots = 4096;  ///< Workers of a node. Likewise.
  };
  struct Settings {
    Duration max_lease = std::chrono::seconds(60);  ///< A job that asks for more is refused.
    /// For this server to be the first at its endpoint (protocol.md 6): no recovery is needed for
    /// nodes that were told of no round.
    bool first_here = false;
    std::optional<std::string> only_job;  ///< Of an embedded server; nullopt: any.
    TimePoint bound_at;                   ///< From when recovery is counted.
    std::uint32_t epoch_bits = 0;         ///< Random: the lower half of this server's epochs.
    std::uint64_t seed = 0;               ///< Of the rounds' secrets.
    std::string version;                  ///< Told in Welcome.
    Limits limits;
    std::vector<Archive::Kept> kept{};  ///< Verdicts of a server before this one, oldest first.
  };

  explicit Rendezvous(Settings settings);
  ~Rendezvous();

  /// A Hello (its token proven, where one is asked for) came on this connection. `peer` and
  /// `local` are the connection's ends as this server sees them, numeric.
  struct Greeted {
    LinkId link;
    Hello hello;
    std::string peer;
    std::string local;
  };
  struct Heard {
    LinkId link;
    AgentMessage message;
  };
  struct Lost {  ///< The connection is gone: proves nothing.
    LinkId link;
  };
  struct Departed {  ///< A farewell, on a connection of its own. Answer: Acknowledge.
    LinkId link;
    Farewell farewell;
    Incarnation incarnation;  ///< Of its secret.
  };
  struct Commanded {
    CommandId id;
    std::string job;
    Command command;
  };
  struct TurnedAway {  ///< By the store that was opened for this job (OpenStore).
    std::string job;
    std::string address;  ///< Numeric.
  };
  struct Ending {  ///< This server goes, and none comes after it.
    std::string reason;
  };
  struct Ticked {};
  using Event = std::variant<Greeted, Heard, Lost, Departed, Commanded, TurnedAway, Ending, Ticked>;

  using Send = action::Send;
  using Acknowledge = action::Acknowledge;
  using Close = action::Close;
  using Answer = action::Answer;
  using Note = action::Note;
  using OpenStore = action::OpenStore;
  using CloseStore = action::CloseStore;
  using Ended = action::Ended;
  using Action = action::Action;

  [[nodiscard]] std::vector<Action> step(TimePoint now, const Event& event);

  /// When to send Ticked although nothing happens; nullopt: never.
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

  /// That have not ended.
  [[nodiscard]] std::size_t job_count() const { return jobs_.size(); }
  [[nodiscard]] std::vector<JobView> jobs(TimePoint now) const;
  [[nodiscard]] std::optional<JobView> job(TimePoint now, const std::string& id) const;
  /// All that is remembered of the newest job of this id that has ended; nullptr: none has.
  [[nodiscard]] const Archive::Ended* ended(const std::string& id) const {
    return archive_.newest(id);
  }

 private:
  /// For which agent of which job a connection speaks.
  struct Speaker {
    std::string job;
    Incarnation incarnation;
  };

  void on(TimePoint now, const Greeted& greeted);
  void on(TimePoint now, const Heard& heard);
  void on(TimePoint now, const Lost& lost);
  void on(TimePoint now, const Departed& departed);
  void on(TimePoint now, const Commanded& commanded);
  void on(TimePoint now, const TurnedAway& turned_away);
  void on(TimePoint now, const Ending& ending);
  void on(TimePoint now, const Ticked& ticked);

  [[nodiscard]] std::optional<Refusal> refusal(const Hello& hello) const;
  void admit(TimePoint now, const Greeted& greeted);
  void greet(TimePoint now, Job& job, const Greeted& greeted);
  void begin(TimePoint now, const Greeted& greeted);
  void wait(const Greeted& greeted, const std::string& why);
  void hear_waiting(LinkId link, const AgentMessage& message);
  void tell_late(LinkId link, const Hello& hello, const Verdict& verdict);
  void refuse(LinkId link, const Hello& hello, Refusal refusal);
  void forget_departed(TimePoint now);
  void settle(TimePoint now, const std::string& id, std::size_t members_before);

  Settings settings_;
  Job::Common common_;
  std::map<std::string, Job> jobs_;
  std::map<LinkId, Speaker> links_;
  std::map<LinkId, Greeted> waiting_;  // For the end of the job that has their id.
  Archive archive_;
  Deadlines<std::string> deadlines_;  // Of jobs.
  std::size_t nodes_ = 0;
  /// Farewells to jobs that are not known, in recovery: they count when the job is learned.
  std::map<std::string, std::map<Incarnation, Farewell>> departed_;
  std::size_t departed_count_ = 0;
  std::vector<Action> actions_;  // Of the step under way.
};

}  // namespace muster::rendezvous

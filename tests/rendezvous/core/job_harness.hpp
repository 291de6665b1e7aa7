#pragma once

#include "rendezvous/core/rendezvous.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace muster::rendezvous::test {

[[nodiscard]] JobSettings nodes(std::uint32_t min, std::uint32_t max, std::uint32_t restarts = 0);

/// The longest lease that the server admits is 10 s: recovery lasts 12.5 s.
[[nodiscard]] Rendezvous::Settings short_recovery();

/// A scripted agent: what it was told, and what it holds. It obeys at once unless told to be slow.
struct Agent {
  Hello hello;
  std::string peer;
  std::string local = "10.0.0.100";
  std::optional<LinkId> link;
  bool pings = true;  ///< One each fifth of the lease.
  bool slow = false;  ///< Says nothing by itself: the test does.
  bool alive = true;
  std::uint64_t ping = 0;
  std::uint64_t memory_used = 0;  ///< As its pings say it.
  std::uint64_t memory_limit = 0;
  TimePoint pinged;

  std::vector<Assignment> assignments;
  std::vector<Stop> stops;
  std::vector<Prepare> prepares;
  std::vector<std::string> waits;
  std::optional<Verdict> verdict;
  std::optional<Refusal> refusal;
  std::uint64_t newest_pong = 0;
  bool gone = false;       ///< Was answered so.
  bool master_up = false;  ///< Of the newest assignment.
  bool dismissed = false;

  [[nodiscard]] const Assignment& assignment() const { return assignments.back(); }
  [[nodiscard]] RoundId round() const { return assignments.back().round; }
  /// The round whose workers it may run.
  [[nodiscard]] std::optional<RoundId> holds() const {
    return hello.held.empty ? std::nullopt : hello.held.round;
  }
};

/// A Rendezvous on a virtual clock, with scripted agents around it. After each step the invariants
/// of rounds are checked: no rank has two holders, and the ranks of a round are 0 .. world size
/// - 1.
class Sim {
 public:
  explicit Sim(JobSettings settings = {}, Rendezvous::Settings server = {});

  /// An agent with this name that has not said Hello; to be altered before `greet`.
  Agent& add(const std::string& name);
  Agent& greet(const std::string& name);  ///< Says Hello on a new connection.
  Agent& join(const std::string& name) {
    add(name);
    return greet(name);
  }
  Agent& operator[](const std::string& name) { return agents_.at(name); }

  void say(const std::string& name, Report report);
  void ping(const std::string& name);
  void start(const std::string& name);  ///< Acknowledged and Started.
  void fail(const std::string& name, ExitStatus status, Cause cause = Cause::WorkerError,
            std::uint32_t local_rank = 0);
  void succeed(const std::string& name);  ///< Succeeded, and nothing is left.
  void empty(const std::string& name, std::uint16_t port = 2000);  ///< Stopped and Empty.
  void drop(const std::string& name);                              ///< Its connection is gone.
  void farewell(const std::string& name, const std::string& reason = "killed by SIGKILL");
  /// It and its connection are frozen: no ping any more.
  void freeze(const std::string& name) { agents_.at(name).pings = false; }
  Result<std::string> command(Command command);

  void advance(Duration time);
  /// Another server in its place: all connections are gone. Agents keep what they hold.
  void restart_server(Duration after = Duration::zero(), bool first_here = false);

  [[nodiscard]] TimePoint now() const { return now_; }
  [[nodiscard]] JobView view() const { return rendezvous_->job(now_, job_).value(); }
  [[nodiscard]] bool knows_job() const { return rendezvous_->job(now_, job_).has_value(); }
  [[nodiscard]] std::string state_of(const std::string& name) const;
  [[nodiscard]] bool noted(const std::string& part) const;
  [[nodiscard]] const std::vector<Rendezvous::Action>& actions() const { return all_; }
  void forget_actions() { all_.clear(); }
  void feed(const Rendezvous::Event& event);

  JobSettings settings;
  std::string tag;

 private:
  void deliver(LinkId link, const ServerMessage& message);
  void obey(Agent& agent, const Order& order);
  void check() const;
  void drain();

  std::string job_ = "job";
  Rendezvous::Settings server_;
  std::optional<Rendezvous> rendezvous_;
  TimePoint now_;
  std::map<std::string, Agent> agents_;
  std::map<LinkId, std::string> links_;
  std::uint64_t next_link_ = 1;
  std::deque<Rendezvous::Event> pending_;
  bool feeding_ = false;
  std::vector<Rendezvous::Action> all_;
};

/// Makes it a running job of these nodes, none on probation any more.
Sim& running(Sim& sim, const std::vector<std::string>& names);

/// Who comes back pings at once, as it must.
void back(Sim& sim, const std::string& name);

}  // namespace muster::rendezvous::test

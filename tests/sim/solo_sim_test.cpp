// The two cores of a job on one machine, joined in virtual time: SoloRendezvous gives orders,
// WorkerGroup carries them out on workers that are parties of their own. They fail, hang, ignore
// signals, leave children behind, die slowly or not at all, by a seeded schedule; the user sends
// signals. Invariants are checked after every step, and every schedule must end.

#include "agent/core/worker_group.hpp"
#include "rendezvous/core/solo_rendezvous.hpp"

#include <csignal>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <string>

#include <catch2/catch.hpp>

using namespace muster;
using namespace std::chrono_literals;
using agent::WorkerGroup;
using rendezvous::SoloRendezvous;

namespace {

/// What the driver around the cores may do wrong, to show that the checks find it.
enum class Planted { Nothing, TreeCalledEmptyTooEarly, TicksLost, StopsLost };

class SoloSim {
 public:
  SoloSim(std::uint64_t seed, Planted planted) : chance_(seed), planted_(planted) {
    settings_.workers = 1 + pick(4);
    settings_.grace = pick(2) == 0 ? 1s : 30s;
    budget_ = pick(4);
    group_.emplace(settings_);
    job_.emplace(SoloRendezvous::Settings{.max_restarts = budget_});
    if (pick(4) == 0) at(pick(20'000'000) * 1us, [this] { report(Leaving{SIGTERM}); });
    at(kUsersPatience, [this] { report(Leaving{SIGINT}); });  // Some worker may hang for ever.
  }

  /// Runs to the end; the first rule that broke, or empty.
  std::string run() {
    report(Hello{.slots = settings_.workers});
    const auto horizon = now_ + kUsersPatience + settings_.grace + WorkerGroup::kKillPatience + 1s;
    while (broken_.empty() && !verdict_) {
      const auto tick = planted_ == Planted::TicksLost ? std::nullopt : group_->next_deadline();
      if (events_.empty() && !tick) return "nothing will ever happen again";
      if (tick && (events_.empty() || *tick <= events_.top().when)) {
        now_ = std::max(now_, *tick);
        feed(WorkerGroup::Ticked{});
      } else {
        const auto event = events_.top();
        events_.pop();
        now_ = event.when;
        event.what();
      }
      if (now_ > horizon) return "no verdict in time";
    }
    if (broken_.empty() && !stuck_ && !processes_.empty())
      return "processes are left after the verdict";
    if (broken_.empty() && verdict_->restarts > budget_) return "more restarts than allowed";
    if (broken_.empty() && verdict_->exit_code == 0 && failed_in_last_round_)
      return "a failure was called a success";
    return broken_;
  }

 private:
  static constexpr Duration kUsersPatience = 1000s;

  struct Event {
    TimePoint when;
    std::uint64_t order;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return std::tie(other.when, other.order) < std::tie(when, order);  // The earliest is on top.
    }
  };
  /// A worker's main process, or a child of one that outlives it.
  struct Process {
    std::uint64_t round;
    std::optional<std::uint32_t> index;  // nullopt: a child.
    bool obeys;                          // SIGTERM.
    bool killable;
  };

  std::uint32_t pick(std::uint32_t below) { return static_cast<std::uint32_t>(chance_() % below); }
  void at(Duration after, std::function<void()> what) {
    events_.push({now_ + after, order_++, std::move(what)});
  }

  void report(Report report) {
    at(0ns, [this, report = std::move(report)] {
      for (const auto& order : job_->step(now_, report))
        std::visit([this](const auto& what) { obey(what); }, order);
    });
  }

  void obey(const Assignment& assignment) {
    if (!processes_.empty()) broken_ = "a round began while processes of the last one lived";
    if (assignment.restarts > budget_) broken_ = "a restart beyond the budget";
    if (assignment.round <= newest_) broken_ = "a round's name was used again";
    newest_ = assignment.round;
    failed_in_last_round_ = false;
    feed(WorkerGroup::Assigned{assignment});
  }
  void obey(const Stop& stop) {
    if (planted_ == Planted::StopsLost) return;
    feed(WorkerGroup::StopOrdered{stop});
  }
  void obey(const Verdict& verdict) { verdict_ = verdict; }
  void obey(const Prepare&) {}
  void obey(const MasterUp&) {}
  void obey(const Keep&) {}

  void feed(WorkerGroup::Event event) {
    pending_.push_back(std::move(event));
    if (feeding_) return;
    feeding_ = true;
    while (!pending_.empty()) {
      const auto next = pending_.front();
      pending_.pop_front();
      for (const auto& action : group_->step(now_, next))
        std::visit([this](const auto& what) { act(what); }, action);
    }
    feeding_ = false;
  }

  void act(const WorkerGroup::HostStore&) { feed(WorkerGroup::Hosted{}); }
  void act(const WorkerGroup::Spawn& spawn) {
    if (pick(200) == 0) {
      feed(WorkerGroup::NotSpawned{spawn.index, "no more processes", false});
      return;
    }
    const auto round = spawn.assignment.round.number;
    for (const auto& [id, other] : processes_) {
      if (other.round != round) broken_ = "a worker started beside one of another round";
      if (other.index == spawn.index) broken_ = "two workers with one rank";
    }
    const auto id = born(
        {.round = round, .index = spawn.index, .obeys = pick(4) != 0, .killable = pick(100) != 0});
    feed(WorkerGroup::Spawned{spawn.index});
    const ExitStatus status = pick(3) == 0   ? ExitStatus{.code = 1 + static_cast<int>(pick(3))}
                              : pick(8) == 0 ? ExitStatus{.signal = SIGKILL}
                                             : ExitStatus{};
    const bool leaves_child = pick(5) == 0;
    if (pick(10) == 0) return;  // It hangs.
    at(pick(2) == 0 ? pick(1000) * 1ms : pick(100) * 1s, [this, id, status, leaves_child, round] {
      if (!processes_.contains(id)) return;
      if (leaves_child) {
        const auto child =
            born({.round = round, .index = {}, .obeys = pick(2) == 0, .killable = true});
        at(pick(30) * 1s, [this, child] { gone(child, {}); });
      }
      gone(id, status);
    });
  }
  void act(const WorkerGroup::Signal& signal) {
    for (const auto& [id, process] : processes_) {
      if (process.index != signal.index || !process.obeys) continue;
      // Some save a checkpoint first and exit 0.
      const ExitStatus status = pick(3) == 0 ? ExitStatus{} : ExitStatus{.signal = signal.signal};
      at(pick(2000) * 1ms, [this, victim = id, status] { gone(victim, status); });
    }
  }
  void act(const WorkerGroup::Knock&) { broken_ = "a node that is alone knocked"; }
  void act(const WorkerGroup::StopKnocking&) { broken_ = "a node that is alone knocked"; }
  void act(const WorkerGroup::TellWorkers&) { broken_ = "there was nothing to tell"; }
  void act(const WorkerGroup::SignalTree& signal) {
    for (const auto& [id, process] : processes_) {
      const bool ends = process.killable && (process.obeys || signal.signal == SIGKILL);
      if (process.index || !ends) continue;
      at(pick(2000) * 1ms,
         [this, child = id, number = signal.signal] { gone(child, {.signal = number}); });
    }
    if (processes_.empty()) feed(WorkerGroup::TreeEmptied{});
  }
  void act(const WorkerGroup::KillTree&) {
    for (const auto& [id, process] : processes_) {
      if (process.killable)
        at(pick(5) * 1ms, [this, victim = id] { gone(victim, {.signal = SIGKILL}); });
    }
    if (processes_.empty()) feed(WorkerGroup::TreeEmptied{});
  }
  void act(const WorkerGroup::Send& send) {
    if (std::holds_alternative<Failed>(send.report)) failed_in_last_round_ = true;
    report(send.report);
  }
  void act(const WorkerGroup::EndRound& end) {
    if (!processes_.empty()) broken_ = "a round was over while processes of it lived";
    report(Empty{end.round, end.victims, {}});
  }
  void act(const WorkerGroup::GiveUp& give_up) {
    stuck_ = true;
    report(Stuck{give_up.round, {}});
  }

  std::uint64_t born(Process process) {
    processes_.emplace(next_id_, process);
    return next_id_++;
  }
  void gone(std::uint64_t id, ExitStatus status) {
    const auto found = processes_.find(id);
    if (found == processes_.end()) return;
    const auto index = found->second.index;
    processes_.erase(found);
    if (index) feed(WorkerGroup::Exited{*index, status, {}});
    const bool early = planted_ == Planted::TreeCalledEmptyTooEarly;
    if (processes_.empty() || early) feed(WorkerGroup::TreeEmptied{});
  }

  std::mt19937_64 chance_;
  Planted planted_;
  WorkerGroup::Settings settings_;
  std::uint32_t budget_ = 0;
  std::optional<SoloRendezvous> job_;
  std::optional<WorkerGroup> group_;
  TimePoint now_{};
  std::priority_queue<Event> events_;
  std::uint64_t order_ = 0;
  std::deque<WorkerGroup::Event> pending_;
  bool feeding_ = false;
  std::map<std::uint64_t, Process> processes_;
  std::uint64_t next_id_ = 0;
  RoundId newest_;
  bool failed_in_last_round_ = false;
  bool stuck_ = false;
  std::optional<Verdict> verdict_;
  std::string broken_;
};

std::uint64_t first_seed() {
  const char* given = std::getenv("MUSTER_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

constexpr int kSchedules = 20'000;

}  // namespace

TEST_CASE("every schedule of a job on one machine ends, with at most one holder of each rank",
          "[sim][solo]") {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + kSchedules; ++seed) {
    const auto broken = SoloSim(seed, Planted::Nothing).run();
    INFO("MUSTER_SEED=" << seed);
    REQUIRE(broken.empty());
  }
}

TEST_CASE("the simulation finds planted faults", "[sim][solo]") {
  for (const auto planted :
       {Planted::TreeCalledEmptyTooEarly, Planted::TicksLost, Planted::StopsLost}) {
    std::uint64_t seed = 1;
    while (seed < 1000 && SoloSim(seed, planted).run().empty()) ++seed;
    INFO("planted fault " << static_cast<int>(planted));
    CHECK(seed < 1000);
  }
}

#pragma once

#include "base/membership.hpp"

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace muster::rendezvous {

// clang-format off
/// The rendezvous of a job that has one node only: rounds one after the other, restarts while the budget
/// lasts, one verdict. There is no lease and nothing to wait for (protocol.md 2); who restarts, what is
/// charged and which cause is named first follow protocol.md 5.
///
///   Gathering --Hello--> Running
///   Running  --Succeeded--> Finishing --Empty--> Ended (0)
///   Running  --Failed--> Stopping --Empty, budget left--> Running, the next round
///   Stopping --Empty, no budget left, or no worker of the job ever started--> Ended (the first cause's code)
///   Gathering --Leaving--> Ended (128 + signal)
///   Finishing --Leaving--> Finishing: what the workers left behind has no more time
///   Running, Stopping --Leaving--> Stopping --Empty--> Ended (128 + signal; the first cause's code
///                                             where the failure before it would have ended the job anyway)
///   Stopping, Finishing --Stuck--> Ended (the first cause's code, or 128 + signal; 1 where there is neither)
///
/// Pure: the same calls give the same orders.
// clang-format on
class SoloJob {
 public:
  struct Settings {
    std::uint32_t max_restarts = 0;
    std::uint64_t epoch = 1;  ///< Of its rounds.
  };

  explicit SoloJob(Settings settings) : settings_(settings) {}

  /// Orders that follow from a report, to be carried out in order. A report of another round than
  /// the running one is stale and changes nothing.
  [[nodiscard]] std::vector<Order> step(const Report& report);

 private:
  struct Gathering {};
  struct Running {};
  struct Stopping {};
  struct Finishing {};
  struct Ended {};

  std::vector<Order> on(const Hello& hello);
  std::vector<Order> on(const Started& started);
  std::vector<Order> on(const Failed& failed);
  std::vector<Order> on(const Succeeded& succeeded);
  std::vector<Order> on(const Empty& empty);
  std::vector<Order> on(const Stuck& stuck);
  std::vector<Order> on(const Leaving& leaving);

  Assignment next_assignment(const Endpoint& store);
  std::vector<Order> end(Verdict verdict);
  Verdict failure_verdict() const;
  Verdict leaving_verdict() const;
  bool may_restart() const;
  bool is_current(RoundId round) const { return round == round_; }

  Settings settings_;
  std::variant<Gathering, Running, Stopping, Finishing, Ended> phase_;
  Hello node_;
  RoundId round_;
  std::uint32_t attempts_ = 0;
  std::uint32_t restarts_ = 0;
  bool any_started_ = false;
  std::vector<WorkerFailure> failures_;  // Of the running round, in order of arrival.
  std::vector<Victim> victims_;          // What failed after the user's signal.
  std::optional<int> leaving_;           // The signal that ends the job.
};

}  // namespace muster::rendezvous

#include "rendezvous/core/solo_rendezvous.hpp"

#include <csignal>

#include <catch2/catch.hpp>

using namespace muster;
using rendezvous::SoloRendezvous;

namespace {

/// The rendezvous, at one instant: nothing here waits for time.
class Solo {
 public:
  explicit Solo(SoloRendezvous::Settings settings) : rendezvous_(settings) {}
  std::vector<Order> step(const Report& report) { return rendezvous_.step(TimePoint{}, report); }

 private:
  SoloRendezvous rendezvous_;
};

const Hello kHello{.slots = 3, .role = "default", .store = {"127.0.0.1", 1000}};

template <class T>
T only(const std::vector<Order>& orders) {
  REQUIRE(orders.size() == 1);
  REQUIRE(std::holds_alternative<T>(orders[0]));
  return std::get<T>(orders[0]);
}

Failed failed(RoundId round, std::uint32_t rank, ExitStatus status,
              Cause cause = Cause::WorkerError) {
  WorkerFailure failure;
  failure.rank = {rank};
  failure.status = status;
  failure.cause = cause;
  return {round, failure};
}

Empty empty(RoundId round, std::uint16_t port = 2000) { return {round, {}, {"127.0.0.1", port}}; }

}  // namespace

TEST_CASE("the only node has all ranks", "[rendezvous][solo]") {
  Solo job({.max_restarts = 2});
  const auto assignment = only<Assignment>(job.step(kHello));
  CHECK(assignment.round.number == 1);
  CHECK_FALSE(assignment.store_on_server);
  CHECK(assignment.world_size == 3);
  CHECK(assignment.local_world_size == 3);
  CHECK(assignment.rank_offset == Rank{0});
  CHECK(assignment.nodes == 1);
  CHECK(assignment.attempt == 0);
  CHECK(assignment.restarts == 0);
  CHECK(assignment.max_restarts == 2);
  CHECK(assignment.master == Endpoint{"127.0.0.1", 1000});
}

TEST_CASE("success ends with 0, once nothing is left", "[rendezvous][solo]") {
  Solo job({});
  const auto round = only<Assignment>(job.step(kHello)).round;
  CHECK(job.step(Started{round}).empty());
  CHECK(job.step(Succeeded{round}).empty());
  const auto verdict = only<Verdict>(job.step(empty(round)));
  CHECK(verdict.exit_code == 0);
  CHECK(verdict.attempts == 1);
}

TEST_CASE("a failure is charged and the next round has a store of its own", "[rendezvous][solo]") {
  Solo job({.max_restarts = 1});
  const auto first = only<Assignment>(job.step(kHello)).round;
  (void)job.step(Started{first});
  CHECK(only<Stop>(job.step(failed(first, 1, {.code = 5}))).signal == SIGTERM);
  CHECK(job.step(failed(first, 2, {.code = 6})).empty());
  const auto second = only<Assignment>(job.step(empty(first, 2000)));
  CHECK(second.round > first);
  CHECK(second.attempt == 1);
  CHECK(second.restarts == 1);
  CHECK(second.master.port == 2000);

  (void)job.step(Started{second.round});
  (void)job.step(failed(second.round, 0, {.code = 7}));
  const auto verdict = only<Verdict>(job.step(empty(second.round)));
  CHECK(verdict.exit_code == 7);
  CHECK(verdict.attempts == 2);
  CHECK(verdict.restarts == 1);
}

TEST_CASE("causes rank, and within a class the first to arrive is named", "[rendezvous][solo]") {
  Solo job({});
  const auto round = only<Assignment>(job.step(kHello)).round;
  (void)job.step(Started{round});
  (void)job.step(failed(round, 0, {.code = 1}, Cause::PeerLoss));
  (void)job.step(failed(round, 2, {.code = 9}));
  (void)job.step(failed(round, 1, {.code = 8}));
  const auto verdict = only<Verdict>(job.step(empty(round)));
  CHECK(verdict.exit_code == 9);
  CHECK(verdict.cause->rank == Rank{2});
  REQUIRE(verdict.others.size() == 2);
  CHECK(verdict.others[0].rank == Rank{0});
  CHECK(verdict.others[1].rank == Rank{1});
}

TEST_CASE("a worker killed by a signal ends the job with 128 + its number", "[rendezvous][solo]") {
  Solo job({});
  const auto round = only<Assignment>(job.step(kHello)).round;
  (void)job.step(failed(round, 1, {.signal = SIGSEGV}));
  CHECK(only<Verdict>(job.step(empty(round))).exit_code == 139);
}

TEST_CASE("if no worker ever started, a failure ends the job whatever the budget",
          "[rendezvous][solo]") {
  Solo job({.max_restarts = 5});
  const auto round = only<Assignment>(job.step(kHello)).round;
  WorkerFailure failure;
  failure.user_error = GENERATE(true, false);
  (void)job.step(Failed{round, failure});
  CHECK(only<Verdict>(job.step(empty(round))).exit_code == (failure.user_error ? 2 : 1));
}

TEST_CASE("a user's signal stops the workers with it and ends the job", "[rendezvous][solo]") {
  Solo job({.max_restarts = 5});
  const auto round = only<Assignment>(job.step(kHello)).round;
  (void)job.step(Started{round});
  CHECK(only<Stop>(job.step(Leaving{SIGINT})).signal == SIGINT);
  CHECK(job.step(Leaving{SIGTERM}).empty());
  CHECK(only<Verdict>(job.step(empty(round))).exit_code == 128 + SIGINT);
}

TEST_CASE("a user's signal during a restart's stop ends the job instead", "[rendezvous][solo]") {
  Solo job({.max_restarts = 5});
  const auto round = only<Assignment>(job.step(kHello)).round;
  (void)job.step(Started{round});
  (void)job.step(failed(round, 1, {.code = 5}));
  CHECK(job.step(Leaving{SIGTERM}).empty());
  CHECK(only<Verdict>(job.step(empty(round))).exit_code == 128 + SIGTERM);
}

TEST_CASE("a failure that had ended the job already keeps its code when the user's signal comes",
          "[rendezvous][solo]") {
  Solo job({.max_restarts = 0});
  const auto round = only<Assignment>(job.step(kHello)).round;
  (void)job.step(Started{round});
  (void)job.step(failed(round, 1, {.code = 7}));
  (void)job.step(Leaving{SIGTERM});
  const auto verdict = only<Verdict>(job.step(empty(round)));
  CHECK(verdict.exit_code == 7);
  CHECK(verdict.cause->rank == Rank{1});
  CHECK(verdict.summary == "rank 1 exited with code 7; then the launcher got SIGTERM");
}

TEST_CASE("how workers end after the user's signal is no cause", "[rendezvous][solo]") {
  Solo job({.max_restarts = 0});
  const auto round = only<Assignment>(job.step(kHello)).round;
  (void)job.step(Started{round});
  (void)job.step(Leaving{SIGINT});
  (void)job.step(failed(round, 1, {.code = 1}));
  const auto verdict = only<Verdict>(job.step(empty(round)));
  CHECK(verdict.exit_code == 128 + SIGINT);
  CHECK_FALSE(verdict.cause);
  REQUIRE(verdict.victims.size() == 1);
  CHECK(verdict.victims[0].rank == Rank{1});
}

TEST_CASE("a signal after all workers succeeded only hurries what they left behind",
          "[rendezvous][solo]") {
  Solo job({.max_restarts = 0});
  const auto round = only<Assignment>(job.step(kHello)).round;
  (void)job.step(Succeeded{round});
  CHECK(only<Stop>(job.step(Leaving{SIGTERM})).round == round);
  CHECK(only<Verdict>(job.step(empty(round))).exit_code == 0);
}

TEST_CASE("if some workers started and one could not, the budget counts", "[rendezvous][solo]") {
  Solo job({.max_restarts = 1});
  const auto round = only<Assignment>(job.step(kHello)).round;
  (void)job.step(Failed{round, WorkerFailure{}, 2});
  CHECK(only<Assignment>(job.step(empty(round))).restarts == 1);
}

TEST_CASE("a stuck node can't be used for another round", "[rendezvous][solo]") {
  Solo job({.max_restarts = 5});
  const auto round = only<Assignment>(job.step(kHello)).round;
  (void)job.step(Started{round});
  (void)job.step(failed(round, 1, {.code = 5}));
  const auto verdict = only<Verdict>(job.step(Stuck{round, {77, 78}}));
  CHECK(verdict.exit_code == 5);
  CHECK(verdict.summary.find("77 78") != std::string::npos);
}

TEST_CASE("reports of an older round change nothing", "[rendezvous][solo]") {
  Solo job({.max_restarts = 5});
  const auto first = only<Assignment>(job.step(kHello)).round;
  (void)job.step(Started{first});
  (void)job.step(failed(first, 1, {.code = 5}));
  (void)job.step(empty(first));
  CHECK(job.step(failed(first, 0, {.code = 5})).empty());
  CHECK(job.step(empty(first)).empty());
  CHECK(job.step(Succeeded{first}).empty());
}

TEST_CASE("what only reports a peer's loss gives way to what is seen until all is over",
          "[rendezvous][solo]") {
  Solo job({});
  const auto round = only<Assignment>(job.step(kHello)).round;
  (void)job.step(Started{round});
  (void)job.step(failed(round, 0, {.code = 1}, Cause::PeerLoss));
  CHECK(job.step(Stopped{round}).empty());
  (void)job.step(failed(round, 2, {.signal = SIGKILL}, Cause::OutOfMemory));
  CHECK(only<Verdict>(job.step(empty(round))).cause->rank == Rank{2});
}

TEST_CASE("the only node is noticed: its workers save, and the job is worth a requeue",
          "[rendezvous][solo]") {
  Solo job({});
  const auto round = only<Assignment>(job.step(kHello)).round;
  (void)job.step(Started{round});
  const auto prepare = only<Prepare>(job.step(Leaving{SIGTERM, true}));
  CHECK(prepare.round == round);
  CHECK(prepare.left == std::chrono::seconds(30));
  CHECK(prepare.reason == "the launcher got SIGTERM");
  CHECK(job.step(Saving{round, 1}).empty());
  CHECK(only<Stop>(job.step(Saving{round, 0})).round == round);
  CHECK(only<Verdict>(job.step(empty(round))).exit_code == 75);
}

TEST_CASE("the only node, which has no name, is signalled again while its workers save",
          "[rendezvous][solo]") {
  Solo job({});
  const auto round = only<Assignment>(job.step(kHello)).round;
  (void)job.step(Started{round});
  (void)job.step(Leaving{SIGTERM, true});
  CHECK(only<Stop>(job.step(Leaving{SIGTERM, true})).reason == "this node is signalled again");
}

TEST_CASE("the only node may back off before it restarts", "[rendezvous][solo]") {
  using namespace std::chrono_literals;
  SoloRendezvous job({.max_restarts = 1, .restart_backoff = 2s});
  const TimePoint now{};
  const auto round = only<Assignment>(job.step(now, kHello)).round;
  (void)job.step(now, Started{round});
  (void)job.step(now, failed(round, 0, {.code = 1}));
  CHECK(job.step(now, empty(round)).empty());
  CHECK(job.next_deadline() == now + 2s);
  CHECK(only<Assignment>(job.tick(now + 2s)).restarts == 1);
}

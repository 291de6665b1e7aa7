#include "agent/core/fold.hpp"

#include <random>

#include <catch2/catch.hpp>

namespace muster::agent {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

struct FoldSim {
  explicit FoldSim(std::uint32_t workers) : fold(workers) {}

  void add(std::uint32_t worker, std::string_view text) {
    fold.add(now, worker, text, "");
    keep(fold.take(now));
  }
  void advance(Duration by) {
    now += by;
    keep(fold.take(now));
  }
  void keep(const std::vector<Fold::Folded>& lines) {
    for (const auto& line : lines) shown.push_back(line.workers.text() + " " + line.text);
  }

  TimePoint now;
  Fold fold;
  Lines shown;
};

}  // namespace

TEST_CASE("a line that all workers write is shown once, at once", "[agent][fold]") {
  FoldSim sim(3);
  sim.add(2, "loading");
  sim.add(0, "loading");
  CHECK(sim.shown.empty());
  sim.add(1, "loading");
  CHECK(sim.shown == Lines{"0-2 loading"});
  CHECK_FALSE(sim.fold.next_deadline());
}

TEST_CASE("a line that some workers write is shown when its time is over", "[agent][fold]") {
  FoldSim sim(4);
  sim.add(3, "no cache");
  CHECK(sim.fold.next_deadline() == sim.now + 200ms);
  sim.advance(199ms);
  sim.add(0, "no cache");
  sim.add(2, "no cache");
  CHECK(sim.shown.empty());
  sim.advance(1ms);
  CHECK(sim.shown == Lines{"0,2-3 no cache"});
  sim.add(1, "no cache");
  sim.advance(200ms);
  CHECK(sim.shown == Lines{"0,2-3 no cache", "1 no cache"});
}

TEST_CASE("the lines of a worker keep their order and their number", "[agent][fold]") {
  FoldSim sim(2);
  sim.add(0, "a");
  sim.add(0, "b");
  sim.add(0, "b");
  sim.add(1, "b");
  sim.add(1, "a");
  sim.advance(200ms);
  CHECK(sim.shown == Lines{"0 a", "0-1 b", "0 b", "1 a"});
}

TEST_CASE("a finished line waits for the ones before it", "[agent][fold]") {
  FoldSim sim(2);
  sim.add(0, "only mine");
  sim.add(0, "ours");
  sim.add(1, "ours");
  CHECK(sim.shown.empty());
  sim.advance(200ms);
  CHECK(sim.shown == Lines{"0 only mine", "0-1 ours"});
}

TEST_CASE("before a prompt come the lines of its worker", "[agent][fold]") {
  FoldSim sim(2);
  sim.add(1, "one");
  sim.add(0, "zero");
  sim.add(1, "two");
  sim.keep(sim.fold.take_through(0));
  CHECK(sim.shown == Lines{"1 one", "0 zero"});
  sim.keep(sim.fold.take_through(0));
  CHECK(sim.shown.size() == 2);
  sim.keep(sim.fold.take_all());
  CHECK(sim.shown.back() == "1 two");
}

TEST_CASE("what is held is bounded, in lines and in bytes", "[agent][fold]") {
  FoldSim sim(2);
  for (std::size_t line = 0; line <= Fold::kMaxLines; ++line) sim.add(0, std::to_string(line));
  CHECK(sim.shown == Lines{"0 0"});
  FoldSim large(2);
  const std::string half(Fold::kMaxBytes / 2, 'x');
  large.add(0, half);
  large.add(0, half);
  CHECK(large.shown.empty());
  large.add(0, "more");
  CHECK(large.shown.size() == 1);
}

TEST_CASE("no line is lost, doubled or out of a worker's order, whatever comes", "[agent][fold]") {
  std::mt19937 random(7);
  constexpr std::uint32_t kWorkers = 4;
  FoldSim sim(kWorkers);
  std::vector<Lines> written(kWorkers), shown(kWorkers);
  std::vector<Fold::Folded> taken;
  const auto keep = [&taken](std::vector<Fold::Folded> lines) {
    for (auto& line : lines) taken.push_back(std::move(line));
  };
  for (int step = 0; step < 20'000; ++step) {
    const auto worker = static_cast<std::uint32_t>(random() % kWorkers);
    const auto text = std::to_string(random() % 5);
    written[worker].push_back(text);
    sim.now += std::chrono::milliseconds(random() % 50);
    sim.fold.add(sim.now, worker, text, "");
    keep(random() % 100 == 0 ? sim.fold.take_through(worker) : sim.fold.take(sim.now));
  }
  keep(sim.fold.take_all());
  for (const auto& line : taken) {
    for (std::uint32_t worker = 0; worker < kWorkers; ++worker) {
      if (line.workers.contains(worker)) shown[worker].push_back(line.text);
    }
  }
  CHECK(shown == written);
  CHECK(taken.size() < 20'000);
}

}  // namespace muster::agent

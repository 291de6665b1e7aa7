#include "launcher/closing_block.hpp"

#include "base/log/wall_time.hpp"

#include <algorithm>
#include <csignal>
#include <limits>

#include <catch2/catch.hpp>

using namespace muster;
using launcher::closing_block;

namespace {

Verdict failed(WorkerFailure cause) {
  Verdict verdict;
  verdict.exit_code = 1;
  verdict.summary = "rank 2 exited with code 1";
  verdict.cause = std::move(cause);
  return verdict;
}

WorkerFailure worker(std::uint32_t rank, ExitStatus status) {
  WorkerFailure failure;
  failure.rank = {rank};
  failure.status = status;
  return failure;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("those that ended alike share a line, as ranges", "[launcher][closing_block]") {
  auto verdict = failed(worker(2, {.code = 1}));
  for (const std::uint32_t rank : {9U, 0U, 1U, 4U, 5U, 6U})
    verdict.victims.push_back({{rank}, {.signal = SIGTERM}});
  verdict.victims.push_back({{7}, {.code = 0}});
  for (const std::uint32_t rank : {10U, 11U, 12U}) {
    auto other = worker(rank, {.code = 1});
    other.detail = "it reports the loss of a peer";
    verdict.others.push_back(other);
  }
  const auto block = closing_block(verdict, {});
  CHECK(has(block,
            "victims    ranks 0-1,4-6,9: killed by SIGTERM (signal 15); stopped by muster\n"
            "             rank 7: exited with code 0; stopped by muster\n"));
  CHECK(has(block, "also       ranks 10-12 exited with code 1: it reports the loss of a peer\n"));
}

TEST_CASE("a closing block fits on a screen, however much failed", "[launcher][closing_block]") {
  auto cause = worker(2, {.code = 1});
  cause.hint = "h";
  cause.detail = "d";
  cause.log_file = "l";
  for (int line = 0; line < 1000; ++line)
    cause.traceback += "  File " + std::to_string(line) + "\n";
  auto verdict = failed(cause);
  for (std::uint32_t rank = 3; rank < 60; ++rank) {
    verdict.others.push_back(worker(rank, {.code = static_cast<int>(rank)}));
    verdict.victims.push_back({{100 + rank}, {.code = static_cast<int>(rank)}});
  }
  const auto block = closing_block(verdict, {});
  CHECK(std::count(block.begin(), block.end(), '\n') <= 62);
  CHECK(has(block, "and 49 more\n"));
}

TEST_CASE("the block says when the cause ended, and its hint", "[launcher][closing_block]") {
  auto cause = worker(2, {.code = 1});
  cause.ended_at = 1'700'000'000'123'456;
  cause.hint = "try again";
  const auto block = closing_block(failed(cause), {});
  CHECK(has(block, "  at         " + local_time(cause.ended_at) + "\n"));
  CHECK(has(block, "  hint       try again\n"));
}

TEST_CASE("what nobody knows is not said", "[launcher][closing_block]") {
  auto cause = worker(0, {});
  cause.cause = Cause::LostNode;
  cause.status.reset();
  cause.node_rank = {std::numeric_limits<std::uint32_t>::max()};
  const auto block = closing_block(failed(cause), {});
  CHECK(!has(block, "(node"));
  CHECK(!has(block, "  at "));
}

TEST_CASE("times are read by people, and nonsense is left out", "[launcher][wall_time]") {
  CHECK(utc_time(1'700'000'000'000'001) == "2023-11-14T22:13:20.000001Z");
  for (const std::int64_t at :
       {std::int64_t{0}, std::int64_t{-5}, std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()}) {
    CHECK(utc_time(at).empty());
    CHECK(local_time(at).empty());
  }
}

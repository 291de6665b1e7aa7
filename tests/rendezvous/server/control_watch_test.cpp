#include "tests/rendezvous/server/control_host.hpp"

#include <catch2/catch.hpp>

using namespace muster;
using namespace muster::rendezvous;
using namespace std::chrono_literals;

TEST_CASE("a watcher is told the state of jobs, then what changes and why",
          "[rendezvous][control][watch]") {
  Served served;
  served.on_loop([&] { served.board.views["other"] = running_job("other"); });
  const auto client = served.client();
  const auto of_all = context();
  const auto of_one = context();
  v1::WatchEventsRequest one;
  one.set_job("other");
  const auto all = client->WatchEvents(of_all.get(), {});
  const auto other = client->WatchEvents(of_one.get(), one);
  v1::WatchedEvent event;
  REQUIRE(all->Read(&event));
  CHECK(event.sequence() == 1);
  CHECK(event.job() == "job");
  CHECK(event.state().phase() == "running");
  CHECK(event.state().nodes().empty());
  REQUIRE(all->Read(&event));
  CHECK(event.job() == "other");
  REQUIRE(other->Read(&event));
  CHECK(event.sequence() == 1);
  CHECK(event.job() == "other");

  served.on_loop([&] {
    served.board.views["job"].phase = "stopping";
    served.control->noted({.level = Rendezvous::Note::Level::Warn, .job = "job", .text = "one"});
    served.control->noted({.level = Rendezvous::Note::Level::Info, .job = "job", .text = "two"});
  });
  REQUIRE(all->Read(&event));
  CHECK(event.note().level() == v1::DecisionNote::LEVEL_WARN);
  CHECK(event.note().text() == "one");
  REQUIRE(all->Read(&event));
  CHECK(event.note().text() == "two");
  REQUIRE(all->Read(&event));  // Once, for both.
  CHECK(event.sequence() == 5);
  CHECK(event.state().phase() == "stopping");

  served.on_loop([&] {
    served.board.views["job"].phase = "failed";
    served.control->ended("job", {.exit_code = 3, .summary = "rank 1 failed", .cause = {}});
    served.control->ended("other", {.exit_code = 0, .summary = {}, .cause = {}});
  });
  REQUIRE(all->Read(&event));
  CHECK(event.state().phase() == "failed");
  REQUIRE(all->Read(&event));
  CHECK(event.ended().exit_code() == 3);
  CHECK(event.ended().summary() == "rank 1 failed");
  REQUIRE(all->Read(&event));
  CHECK(event.job() == "other");  // Its state has not changed: the end is all there is to say.
  CHECK(event.has_ended());
  REQUIRE(other->Read(&event));
  CHECK(event.sequence() == 2);
  CHECK(event.has_ended());

  of_all->TryCancel();
  CHECK(all->Finish().error_code() == grpc::StatusCode::CANCELLED);
  one.set_job("no such");
  const auto of_none = context();
  const auto none = client->WatchEvents(of_none.get(), one);
  CHECK_FALSE(none->Read(&event));
  CHECK(none->Finish().error_code() == grpc::StatusCode::NOT_FOUND);
}

TEST_CASE("a watcher that does not read loses events, and is told how many",
          "[rendezvous][control][watch]") {
  constexpr std::uint64_t kNotes = 500;
  Served served({.token = {}, .unread_events = 4});
  const auto client = served.client();
  const auto watching = context();
  const auto reader = client->WatchEvents(watching.get(), {});
  v1::WatchedEvent event;
  REQUIRE(reader->Read(&event));
  // More than the connection buffers, without which nothing would have to wait.
  served.on_loop([&] {
    for (std::uint64_t index = 0; index < kNotes; ++index) {
      served.control->noted({.level = {}, .job = "x", .text = std::string(30'000, 'n')});
    }
  });
  std::uint64_t told = 0;
  std::uint64_t lost = 0;
  std::uint64_t missing = 0;
  std::uint64_t last = event.sequence();
  while (told + lost < kNotes && reader->Read(&event)) {
    missing += event.sequence() - last - 1;
    last = event.sequence();
    if (event.has_lost()) {
      lost += event.lost().count();
    } else {
      ++told;
    }
  }
  CHECK(told + lost == kNotes);
  CHECK(lost > 0);
  CHECK(missing == lost);
  CHECK(told >= 4);
}

TEST_CASE("watchers beyond the limit are refused until one leaves",
          "[rendezvous][control][watch]") {
  Served served({.token = {}, .watchers = 1});
  const auto client = served.client();
  v1::WatchedEvent event;
  auto watching = context();
  const auto first = client->WatchEvents(watching.get(), {});
  REQUIRE(first->Read(&event));
  {
    const auto too_many = context();
    const auto second = client->WatchEvents(too_many.get(), {});
    CHECK_FALSE(second->Read(&event));
    CHECK(second->Finish().error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
  watching->TryCancel();
  (void)first->Finish();
  const auto deadline = Clock::now() + kPatience;
  for (bool taken = false; !taken;) {  // The server hears of the end a moment later.
    REQUIRE(Clock::now() < deadline);
    const auto again = context();
    const auto third = client->WatchEvents(again.get(), {});
    taken = third->Read(&event);
    again->TryCancel();
    (void)third->Finish();
  }
}

#include "tests/rendezvous/server/control_host.hpp"

#include <future>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

using namespace muster;
using namespace muster::rendezvous;
using namespace std::chrono_literals;

namespace {

v1::RestartJobRequest restart_of(const std::string& job, std::optional<RoundId> round = {}) {
  v1::RestartJobRequest request;
  request.set_job(job);
  if (round) {
    request.mutable_round()->set_epoch(round->epoch);
    request.mutable_round()->set_number(round->number);
  }
  return request;
}

}  // namespace

TEST_CASE("who does not know the token is not heard", "[rendezvous][control]") {
  Served served;
  const auto client = served.client();
  const std::vector<std::optional<std::string>> strangers{
      std::nullopt,    "",           "right", "Bearer", "Bearer ", "Bearer wrong", "Bearer righ",
      "Bearer right ", "Basic right"};
  for (const auto& authorization : strangers) {
    CAPTURE(authorization.value_or("none"));
    v1::ListJobsReply listed;
    CHECK(client->ListJobs(context(authorization).get(), {}, &listed).error_code() ==
          grpc::StatusCode::UNAUTHENTICATED);
    CHECK(listed.jobs().empty());
    v1::StopJobRequest stop;
    stop.set_job("job");
    v1::StopJobReply stopped;
    CHECK(client->StopJob(context(authorization).get(), stop, &stopped).error_code() ==
          grpc::StatusCode::UNAUTHENTICATED);
    const auto watching = context(authorization);
    v1::WatchedEvent event;
    const auto reader = client->WatchEvents(watching.get(), {});
    CHECK_FALSE(reader->Read(&event));
    CHECK(reader->Finish().error_code() == grpc::StatusCode::UNAUTHENTICATED);
  }
  CHECK(served.board.given.empty());
  for (const char* authorization : {"Bearer right", "bearer right", "BEARER right"}) {
    v1::ListJobsReply listed;
    CHECK(client->ListJobs(context(authorization).get(), {}, &listed).ok());
  }
}

TEST_CASE("jobs are listed without their nodes and causes, and shown with them",
          "[rendezvous][control]") {
  Served served;
  served.on_loop([&] {
    auto odd = running_job("odd\xff");
    odd.phase = "failed";
    odd.reason = "what\xff\nnow";
    odd.round.reset();
    odd.verdict = Verdict{.exit_code = 139, .summary = "rank 3 failed", .cause = {}};
    odd.verdict->cause = WorkerFailure{.rank = {3}, .local_rank = {1}, .node_rank = {1}};
    odd.verdict->cause->status = ExitStatus{.code = 0, .signal = 11};
    odd.verdict->cause->cause = Cause::OutsideSignal;
    odd.verdict->cause->stderr_lines = {"last words"};
    served.board.views[odd.id] = odd;
  });
  const auto client = served.client();
  v1::ListJobsReply listed;
  REQUIRE(client->ListJobs(context().get(), {}, &listed).ok());
  REQUIRE(listed.jobs_size() == 2);
  const auto& job = listed.jobs(0);
  CHECK(job.id() == "job");
  CHECK(job.phase() == "running");
  CHECK(job.round().epoch() == kRound.epoch);
  CHECK(job.round().number() == 7);
  CHECK(job.attempt() == 2);
  CHECK(job.restarts() == 1);
  CHECK(job.max_restarts() == 3);
  CHECK(job.min_nodes() == 1);
  CHECK(job.max_nodes() == 4);
  CHECK(job.world_size() == 8);
  CHECK(job.nodes_total() == 1);
  CHECK(job.step() == 9);
  CHECK(job.nodes().empty());
  CHECK(job.lease().seconds() == 2);
  CHECK(job.lease().nanos() == 500'000'000);
  CHECK_FALSE(job.has_outcome());
  CHECK(listed.jobs(1).id() == "odd\xff");
  CHECK(listed.jobs(1).reason() == "what\\xff\\x0anow");
  CHECK_FALSE(listed.jobs(1).has_round());
  CHECK(listed.jobs(1).outcome().exit_code() == 139);
  CHECK(listed.jobs(1).outcome().summary() == "rank 3 failed");
  CHECK_FALSE(listed.jobs(1).outcome().has_cause());

  v1::GetJobRequest get;
  get.set_job("odd\xff");
  v1::GetJobReply got;
  REQUIRE(client->GetJob(context().get(), get, &got).ok());
  CHECK(got.job().outcome().exit_code() == 139);
  CHECK(got.job().outcome().cause().kind() == "outside signal");
  CHECK(got.job().outcome().cause().status() == "SIGSEGV");
  REQUIRE(got.job().outcome().cause().stderr_lines_size() == 1);
  CHECK(got.job().outcome().cause().stderr_lines(0) == "last words");

  get.set_job("job");
  REQUIRE(client->GetJob(context().get(), get, &got).ok());
  REQUIRE(got.job().nodes_size() == 1);
  const auto& node = got.job().nodes(0);
  CHECK(node.name() == "h0");
  CHECK(node.address() == "10.0.0.1");
  CHECK(node.has_node_rank());
  CHECK(node.slots() == 8);
  CHECK(node.silent_for().nanos() == 250'000'000);
  CHECK(node.progress().slowest_step() == 7);
  CHECK(node.progress().fastest_step() == 9);
  CHECK(node.progress().phase() == "train\\xff");
  CHECK(node.progress().quiet().seconds() == 1);

  get.set_job("no such");
  const auto status = client->GetJob(context().get(), get, &got);
  CHECK(status.error_code() == grpc::StatusCode::NOT_FOUND);
  CHECK(status.error_message() == "no job 'no such' is known here");
}

TEST_CASE("a list of many jobs that failed with much to say is short", "[rendezvous][control]") {
  constexpr int kJobs = 1000;
  Served served;
  served.on_loop([&] {
    auto job = running_job("");
    job.phase = "failed";
    job.reason.assign(10'000, 'r');
    job.verdict = Verdict{.exit_code = 1, .summary = std::string(10'000, '\x01'), .cause = {}};
    job.verdict->cause = WorkerFailure{};
    job.verdict->cause->detail.assign(10'000, 'd');
    served.board.views.clear();
    for (int count = 0; count < kJobs; ++count) {
      job.id = "job " + std::to_string(count);
      served.board.views[job.id] = job;
    }
  });
  v1::ListJobsReply listed;
  REQUIRE(served.client()->ListJobs(context().get(), {}, &listed).ok());
  REQUIRE(listed.jobs_size() == kJobs);
  CHECK(listed.jobs(0).reason() == std::string(256, 'r'));
  CHECK(listed.jobs(0).outcome().exit_code() == 1);
  CHECK(listed.ByteSizeLong() < 2UL * 1024 * kJobs);
}

TEST_CASE("commands reach the job they name, and its answer the caller", "[rendezvous][control]") {
  Served served;
  const auto client = served.client();

  v1::DrainNodeRequest drain;
  drain.set_job("job");
  drain.set_node("h0");
  v1::DrainNodeReply drained;
  REQUIRE(client->DrainNode(context().get(), drain, &drained).ok());
  CHECK(drained.done() == "done so");

  v1::RestartJobReply restarted;
  REQUIRE(client->RestartJob(context().get(), restart_of("job", kRound), &restarted).ok());

  v1::StopJobRequest stop;
  stop.set_job("job");
  stop.mutable_round()->set_epoch(kRound.epoch);
  stop.mutable_round()->set_number(kRound.number);
  v1::StopJobReply stopped;
  REQUIRE(client->StopJob(context().get(), stop, &stopped).ok());

  v1::SetSizesRequest sizes;
  sizes.set_job("job");
  sizes.set_min_nodes(2);
  sizes.set_max_nodes(6);
  // A newer caller says more than this server knows.
  sizes.GetReflection()->MutableUnknownFields(&sizes)->AddVarint(99, 1);
  v1::SetSizesReply sized;
  REQUIRE(client->SetSizes(context().get(), sizes, &sized).ok());

  REQUIRE(served.board.given.size() == 4);
  for (const auto& given : served.board.given) CHECK(given.job == "job");
  CHECK(std::get<DrainNode>(served.board.given[0].command).node == "h0");
  CHECK_FALSE(std::get<DrainNode>(served.board.given[0].command).round);
  CHECK(std::get<RestartJob>(served.board.given[1].command).round == kRound);
  CHECK(std::get<StopJob>(served.board.given[2].command).round == kRound);
  CHECK(std::get<SetSizes>(served.board.given[3].command).min == 2);
  CHECK(std::get<SetSizes>(served.board.given[3].command).max == 6);
  CHECK_FALSE(std::get<SetSizes>(served.board.given[3].command).round);
}

TEST_CASE("what makes no sense is refused before the job hears of it", "[rendezvous][control]") {
  Served served;
  const auto client = served.client();
  v1::SetSizesRequest sizes;
  v1::SetSizesReply sized;
  sizes.set_job("job");
  const auto [min, max] = GENERATE(std::pair(0, 0), std::pair(0, 3), std::pair(4, 3));
  sizes.set_min_nodes(static_cast<std::uint32_t>(min));
  sizes.set_max_nodes(static_cast<std::uint32_t>(max));
  CHECK(client->SetSizes(context().get(), sizes, &sized).error_code() ==
        grpc::StatusCode::INVALID_ARGUMENT);
  v1::DrainNodeRequest drain;
  drain.set_job("job");
  v1::DrainNodeReply drained;
  CHECK(client->DrainNode(context().get(), drain, &drained).error_code() ==
        grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(served.board.given.empty());
}

TEST_CASE("a job's refusal comes as the status that says what to do", "[rendezvous][control]") {
  Served served;
  const auto client = served.client();
  const auto [errc, code] = GENERATE(
      table<Errc, grpc::StatusCode>({{Errc::InvalidArgument, grpc::StatusCode::INVALID_ARGUMENT},
                                     {Errc::NotFound, grpc::StatusCode::NOT_FOUND},
                                     {Errc::Stale, grpc::StatusCode::ABORTED},
                                     {Errc::Unavailable, grpc::StatusCode::UNAVAILABLE},
                                     {Errc::Timeout, grpc::StatusCode::DEADLINE_EXCEEDED},
                                     {Errc::Cancelled, grpc::StatusCode::CANCELLED},
                                     {Errc::Internal, grpc::StatusCode::INTERNAL}}));
  const Errc given = errc;
  served.on_loop([&] { served.board.answer = fail(given, "because"); });
  v1::RestartJobReply reply;
  const auto status = client->RestartJob(context().get(), restart_of("job"), &reply);
  CHECK(status.error_code() == code);
  CHECK(status.error_message() == "because");
}

TEST_CASE("a job that does not answer costs its callers their patience, nothing else",
          "[rendezvous][control]") {
  Served served({.token = {}, .commands = 2, .patience = 200ms});
  served.on_loop([&] { served.board.answer.reset(); });
  const auto client = served.client();
  v1::RestartJobReply reply;
  // Ours is the first to end, then the caller's.
  auto status = client->RestartJob(context().get(), restart_of("job"), &reply);
  CHECK(status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
  CHECK(status.error_message() == "the job has not answered in time: look again");
  const auto impatient = context("Bearer right", 50ms);
  CHECK(client->RestartJob(impatient.get(), restart_of("job"), &reply).error_code() ==
        grpc::StatusCode::DEADLINE_EXCEEDED);
  // Answers that come too late, and twice, are of no use to anybody.
  served.on_loop([&] {
    for (const auto& given : served.board.given) given.done("late");
    for (const auto& given : served.board.given) given.done("later");
    served.board.answer = "in time";
  });
  CHECK(client->RestartJob(context().get(), restart_of("job"), &reply).ok());
}

TEST_CASE("commands beyond the limit are refused while the others wait", "[rendezvous][control]") {
  Served served({.token = {}, .commands = 2});
  served.on_loop([&] { served.board.answer.reset(); });
  const auto client = served.client();
  const auto restart = [&] {
    v1::RestartJobReply reply;
    return client->RestartJob(context().get(), restart_of("job"), &reply).error_code();
  };
  auto first = std::async(std::launch::async, restart);
  auto second = std::async(std::launch::async, restart);
  std::size_t waiting = 0;
  while (waiting < 2) served.on_loop([&] { waiting = served.board.given.size(); });
  CHECK(restart() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  served.on_loop([&] {
    for (const auto& given : served.board.given) given.done("done");
  });
  CHECK(first.get() == grpc::StatusCode::OK);
  CHECK(second.get() == grpc::StatusCode::OK);
}

TEST_CASE("at its end all that is open is answered: watches, commands, calls that just came",
          "[rendezvous][control]") {
  Served served;
  served.on_loop([&] { served.board.answer.reset(); });
  const auto client = served.client();
  const auto watching = context();
  const auto reader = client->WatchEvents(watching.get(), {});
  v1::WatchedEvent event;
  REQUIRE(reader->Read(&event));
  auto waiting = std::async(std::launch::async, [&] {
    v1::RestartJobReply reply;
    return client->RestartJob(context().get(), restart_of("job"), &reply).error_code();
  });
  std::size_t given = 0;
  while (given == 0) served.on_loop([&] { given = served.board.given.size(); });

  const auto began = Clock::now();
  std::future<grpc::StatusCode> late;
  served.on_loop([&] {
    // The loop is busy, so that this call gets no further than gRPC's threads; then the end.
    late = std::async(std::launch::async, [&] {
      v1::ListJobsReply reply;
      return client->ListJobs(context().get(), {}, &reply).error_code();
    });
    CHECK(late.wait_for(200ms) == std::future_status::timeout);
    served.control->stop();
  });
  CHECK(Clock::now() - began < 5s);
  CHECK(late.get() == grpc::StatusCode::UNAVAILABLE);
  CHECK(waiting.get() == grpc::StatusCode::UNAVAILABLE);
  CHECK_FALSE(reader->Read(&event));
  CHECK(reader->Finish().error_code() == grpc::StatusCode::UNAVAILABLE);
  // Nothing is left to happen to those who come later, but that they are turned away.
  const int socket = served.dial();
  char byte = 0;
  CHECK(::recv(socket, &byte, 1, 0) == 0);
  ::close(socket);
  served.on_loop([&] {
    for (const auto& command : served.board.given) command.done("late");
    served.control->noted({.level = {}, .job = "job", .text = "nobody listens"});
  });
}

TEST_CASE("who speaks no HTTP/2 costs its own connection only", "[rendezvous][control]") {
  Served served;
  const auto client = served.client();
  const int stranger = served.dial();
  const std::string noise = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string(4096, '\xff');
  REQUIRE(::send(stranger, noise.data(), noise.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(noise.size()));
  v1::ListJobsReply listed;
  CHECK(client->ListJobs(context().get(), {}, &listed).ok());
  ::close(stranger);
  v1::GetJobRequest large;
  large.set_job(std::string(128UL * 1024, 'x'));
  v1::GetJobReply got;
  CHECK(client->GetJob(context().get(), large, &got).error_code() ==
        grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK(client->ListJobs(context().get(), {}, &listed).ok());
}

TEST_CASE("a server that nobody calls ends at once", "[rendezvous][control]") {
  const auto began = Clock::now();
  {
    const Served served;
  }
  CHECK(Clock::now() - began < 1s);
}

// Control where it belongs: behind a rendezvous server's port, steering its real jobs, called by
// musterctl's own channel.

#include "launcher/ctl/connect.hpp"
#include "muster/v1/control.grpc.pb.h"
#include "rendezvous/server/control.hpp"
#include "rendezvous/server/server_board.hpp"
#include "tests/rendezvous/server/agents.hpp"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <catch2/catch.hpp>

using namespace muster;
using namespace muster::rendezvous;
using namespace std::chrono_literals;

namespace {

constexpr auto kCallPatience = 20s;

/// A job of one node with much to show.
class LongBoard final : public JobBoard {
 public:
  std::vector<JobView> jobs() const override { return {}; }
  std::optional<JobView> job(const std::string& id) const override {
    JobView view;
    view.id = id;
    view.nodes.resize(2000);
    for (auto& node : view.nodes) node.machine = node.name = std::string(512, '\x01');
    return view;
  }
  void command(std::string, Command, std::function<void(Result<std::string>)> done) override {
    done("done");
  }
};

/// A server of real jobs that can be steered, and an operator.
class Steered {
 public:
  using MakeBoard = std::function<std::unique_ptr<JobBoard>(Server&)>;
  explicit Steered(const MakeBoard& make_board = [](Server& server) {
    return std::make_unique<ServerBoard>(server);
  }) {
    host.on_loop([&](Server& server) {
      board_ = make_board(server);
      control_ = std::make_unique<Control>(host.loop(), *board_, Control::Options{.token = "right"},
                                           *logger_);
      server.on_grpc([this](posix::Fd socket, std::string peer) {
        control_->adopt(std::move(socket), std::move(peer));
      });
      server.on_note([this](const Rendezvous::Note& note) { control_->noted(note); });
      server.on_ended([this](const std::string& job, const Verdict& verdict) {
        control_->ended(job, verdict);
      });
    });
  }
  Steered(const Steered&) = delete;
  Steered& operator=(const Steered&) = delete;
  ~Steered() {
    host.on_loop([this](Server& server) {
      server.stop();
      control_.reset();
    });
  }

  [[nodiscard]] std::unique_ptr<v1::Control::Stub> operator_here() {
    auto channel = ctl::connect(host.endpoint(), kCallPatience);
    REQUIRE(channel);
    return v1::Control::NewStub(*channel);
  }

  ServerHost host;

 private:
  std::shared_ptr<Logger> logger_ = make_stderr_logger(spdlog::level::off);
  std::unique_ptr<JobBoard> board_;
  std::unique_ptr<Control> control_;
};

std::unique_ptr<grpc::ClientContext> call_with(std::optional<std::string> token = "right") {
  auto context = std::make_unique<grpc::ClientContext>();
  if (token) context->AddMetadata("authorization", "Bearer " + *token);
  context->set_deadline(std::chrono::system_clock::now() + kCallPatience);
  return context;
}

/// An agent's part: it starts what it is assigned, saves when asked, and answers each Stop.
class Obedient {
 public:
  Obedient(LineBench& bench, const ServerHost& host, const Hello& hello)
      : probe_(greeted(bench, host, hello)) {}

  [[nodiscard]] std::size_t rounds() const { return rounds_; }
  [[nodiscard]] std::optional<int> exit_code() const { return exit_code_; }
  [[nodiscard]] bool is_dismissed() const { return probe_->first<Dismissal>() != nullptr; }

  /// Answers what came since the last time.
  void answer() {
    for (; answered_ < probe_->messages.size(); ++answered_) {
      const auto* const directive = std::get_if<Directive>(&probe_->messages[answered_]);
      if (directive == nullptr) continue;
      if (const auto* const part = std::get_if<Assignment>(&directive->order)) {
        ++rounds_;
        say(Acknowledged{part->round});
        say(Started{part->round});
      } else if (const auto* const stop = std::get_if<Stop>(&directive->order)) {
        say(Stopped{stop->round});
        say(Empty{stop->round, {}, {"127.0.0.1", 4001}});
      } else if (const auto* const prepare = std::get_if<Prepare>(&directive->order)) {
        say(Saving{prepare->round, 0});
      } else if (const auto* const verdict = std::get_if<Verdict>(&directive->order)) {
        exit_code_ = verdict->exit_code;
        say(VerdictSeen{});
      }
    }
  }

 private:
  template <class What>
  void say(const What& what) {
    probe_->line->send(Report(what));
  }

  std::unique_ptr<LineProbe> probe_;
  std::size_t answered_ = 0;
  std::size_t rounds_ = 0;
  std::optional<int> exit_code_;
};

Hello member(const std::string& node) {
  auto hello = hello_of(node, 2);
  hello.settings.min_nodes = 1;
  return hello;
}

}  // namespace

TEST_CASE("an operator sees and steers the jobs of a real server", "[server][control]") {
  Steered steered;
  LineBench bench;
  Obedient a(bench, steered.host, member("a"));
  Obedient b(bench, steered.host, member("b"));
  const auto both_until = [&](const std::function<bool()>& is_so) {
    return bench.until([&] {
      a.answer();
      b.answer();
      return is_so();
    });
  };
  REQUIRE(both_until([&] { return a.rounds() == 1 && b.rounds() == 1; }));
  const auto client = steered.operator_here();

  const auto watching = call_with();
  const auto watch = steered.operator_here();
  v1::WatchEventsRequest of_job;
  of_job.set_job("job");
  const auto events = watch->WatchEvents(watching.get(), of_job);
  v1::WatchedEvent event;
  REQUIRE(events->Read(&event));
  CHECK(event.state().nodes_total() == 2);

  v1::ListJobsReply listed;
  REQUIRE(client->ListJobs(call_with().get(), {}, &listed).ok());
  REQUIRE(listed.jobs_size() == 1);
  CHECK(listed.jobs(0).id() == "job");
  CHECK(listed.jobs(0).phase() == "running");
  CHECK(listed.jobs(0).world_size() == 4);

  v1::GetJobRequest get;
  get.set_job("job");
  v1::GetJobReply got;
  REQUIRE(client->GetJob(call_with().get(), get, &got).ok());
  REQUIRE(got.job().nodes_size() == 2);
  const auto round = got.job().round();

  v1::RestartJobRequest restart;
  restart.set_job("job");
  *restart.mutable_round() = round;
  v1::RestartJobReply restarted;
  REQUIRE(client->RestartJob(call_with().get(), restart, &restarted).ok());
  REQUIRE(both_until([&] { return a.rounds() == 2 && b.rounds() == 2; }));
  CHECK(client->RestartJob(call_with().get(), restart, &restarted).error_code() ==
        grpc::StatusCode::ABORTED);  // That round is over.

  v1::DrainNodeRequest drain;
  drain.set_job("job");
  drain.set_node("b");
  v1::DrainNodeReply drained;
  REQUIRE(client->DrainNode(call_with().get(), drain, &drained).ok());
  REQUIRE(both_until([&] { return a.rounds() == 3; }));
  CHECK(b.rounds() == 2);

  v1::StopJobRequest stop;
  stop.set_job("job");
  v1::StopJobReply stopped;
  REQUIRE(client->StopJob(call_with().get(), stop, &stopped).ok());
  REQUIRE(both_until([&] { return a.is_dismissed(); }));
  REQUIRE(a.exit_code());

  std::optional<int> told;
  bool has_noted = false;
  while (!told && events->Read(&event)) {
    has_noted = has_noted || event.has_note();
    if (event.has_ended()) told = event.ended().exit_code();
  }
  CHECK(has_noted);
  CHECK(told == a.exit_code());
}

TEST_CASE("who has not the token sees and steers nothing of a real server", "[server][control]") {
  Steered steered;
  LineBench bench;
  Obedient a(bench, steered.host, hello_of("a"));
  REQUIRE(bench.until([&] { return a.answer(), a.rounds() == 1; }));
  const auto client = steered.operator_here();
  for (const auto& token : {std::optional<std::string>("wrong"), std::optional<std::string>()}) {
    v1::ListJobsReply listed;
    const auto status = client->ListJobs(call_with(token).get(), {}, &listed);
    CHECK(status.error_code() == grpc::StatusCode::UNAUTHENTICATED);
    v1::StopJobRequest stop;
    stop.set_job("job");
    v1::StopJobReply stopped;
    CHECK(client->StopJob(call_with(token).get(), stop, &stopped).error_code() ==
          grpc::StatusCode::UNAUTHENTICATED);
  }
  v1::GetJobRequest get;
  get.set_job("job");
  v1::GetJobReply got;
  REQUIRE(client->GetJob(call_with().get(), get, &got).ok());
  CHECK(got.job().phase() == "running");
}

TEST_CASE("a gRPC connection is the server's until gRPC has ended it", "[server][control]") {
  Steered steered;
  auto client = steered.operator_here();
  v1::ListJobsReply listed;
  REQUIRE(client->ListJobs(call_with().get(), {}, &listed).ok());
  CHECK(steered.host.stats().connections == 1);
  SECTION("when the peer closes") {
    client.reset();
    CHECK(steered.host.until([](const auto& stats) { return stats.connections == 0; }));
  }
  SECTION("when the peer speaks no HTTP/2") {
    RawClient noise(steered.host.port());
    REQUIRE(noise.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string(4096, '\xff')));
    everything_from(noise);
    CHECK(steered.host.until([](const auto& stats) { return stats.connections == 1; }));
  }
}

TEST_CASE("a job with very many nodes is shown whole", "[server][control]") {
  Steered steered([](Server&) { return std::make_unique<LongBoard>(); });
  const auto client = steered.operator_here();
  v1::GetJobRequest get;
  get.set_job("job");
  v1::GetJobReply got;
  const auto status = client->GetJob(call_with().get(), get, &got);
  INFO(status.error_message());
  REQUIRE(status.ok());
  CHECK(got.job().nodes_size() == 2000);
  CHECK(got.ByteSizeLong() > 8UL * 1000 * 1000);  // gRPC takes 4 MiB by itself.
}

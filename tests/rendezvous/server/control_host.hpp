#pragma once

#include "muster/v1/control.grpc.pb.h"
#include "rendezvous/server/control.hpp"

#include <future>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel_posix.h>
#include <map>
#include <sys/socket.h>
#include <thread>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>

/// Control alone, with jobs as a test wants them.
namespace muster::rendezvous {

using namespace std::chrono_literals;
using Clock = std::chrono::system_clock;

constexpr auto kPatience = 30s;
inline const RoundId kRound{.epoch = 0x1234567800000001, .number = 7};

/// Jobs as a test wants them; commands are kept until it answers.
class FakeBoard : public JobBoard {
 public:
  struct Given {
    std::string job;
    Command command;
    std::function<void(Result<std::string>)> done;
  };
  std::map<std::string, JobView> views;
  std::vector<Given> given;
  std::optional<Result<std::string>> answer = Result<std::string>("done so");  // nullopt: later.

  std::vector<JobView> jobs() const override {
    std::vector<JobView> all;
    for (const auto& [id, view] : views) all.push_back(view);
    return all;
  }
  std::optional<JobView> job(const std::string& id) const override {
    const auto found = views.find(id);
    return found == views.end() ? std::nullopt : std::optional(found->second);
  }
  void command(std::string job, Command command,
               std::function<void(Result<std::string>)> done) override {
    given.push_back({std::move(job), std::move(command), done});
    if (answer) done(*answer);
  }
};

inline JobView running_job(const std::string& id) {
  JobView view;
  view.id = id;
  view.phase = "running";
  view.round = kRound;
  view.attempt = 2;
  view.restarts = 1;
  view.settings.min_nodes = 1;
  view.settings.max_nodes = 4;
  view.settings.max_restarts = 3;
  view.settings.lease = 2500ms;
  view.world_size = 8;
  NodeView node;
  node.name = "h0";
  node.address = "10.0.0.1";
  node.state = "running";
  node.node_rank = NodeRank{0};
  node.slots = 8;
  node.silent_for = 250ms;
  node.progress = NodeProgress{.slowest = 7, .fastest = 9, .phase = "train\xff", .quiet = 1500ms};
  view.step = 9;
  view.nodes = {node};
  return view;
}

/// A Control whose loop runs in a thread of its own, and clients that call it from the test's.
class Served {
 public:
  explicit Served(Control::Options options = {}) {
    options.token = "right";
    board.views["job"] = running_job("job");
    control = std::make_unique<Control>(loop, board, std::move(options), *logger);
    thread = std::thread([this] { loop.run(); });
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  ~Served() {
    on_loop([this] { control.reset(); });
    guard.reset();
    thread.join();
  }

  /// Runs it on the loop, and waits for it.
  void on_loop(const std::function<void()>& work) {
    std::packaged_task<void()> task(work);
    auto done = task.get_future();
    boost::asio::post(loop, [&task] { task(); });
    done.get();
  }

  /// The client's end of a connection that the server has just accepted.
  int dial() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    on_loop([&] { control->adopt(posix::Fd(ends[0]), "10.0.0.9:1234"); });
    return ends[1];
  }
  std::unique_ptr<v1::Control::Stub> client() {
    return v1::Control::NewStub(grpc::CreateInsecureChannelFromFd("server", dial()));
  }

  boost::asio::io_context loop{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard{
      loop.get_executor()};
  FakeBoard board;
  std::shared_ptr<Logger> logger = make_stderr_logger(spdlog::level::off);
  std::unique_ptr<Control> control;
  std::thread thread;
};

/// A call's context: the right token unless another authorization is given, and a deadline.
inline std::unique_ptr<grpc::ClientContext> context(
    const std::optional<std::string>& authorization = "Bearer right",
    Clock::duration patience = kPatience) {
  auto made = std::make_unique<grpc::ClientContext>();
  if (authorization) made->AddMetadata("authorization", *authorization);
  made->set_deadline(Clock::now() + patience);
  return made;
}

}  // namespace muster::rendezvous

#include "launcher/ctl/commands.hpp"

#include "base/posix/stream.hpp"
#include "base/text.hpp"
#include "launcher/ctl/connect.hpp"
#include "launcher/ctl/json.hpp"
#include "launcher/ctl/show.hpp"
#include "muster/v1/control.grpc.pb.h"

#include <chrono>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <string>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

namespace muster::ctl {
namespace {

/// Of whoever reads what we print. `watch` waits as long as it takes.
constexpr Duration kReadPatience = std::chrono::seconds(30);
constexpr Duration kNoEnd = std::chrono::hours(24 * 365);

Result<void> print(const std::string& text, Duration patience = kReadPatience) {
  if (posix::write_within(1, text, patience)) return {};
  return fail(Errc::Unavailable, "nobody reads what is printed");
}

Result<void> print(const boost::json::object& object, Duration patience = kReadPatience) {
  return print(boost::json::serialize(object) + "\n", patience);
}

/// One server, and how to ask it.
class Asker {
 public:
  Asker(const Options& options, const FoundServer& server,
        const std::shared_ptr<grpc::Channel>& channel)
      : options_(options), server_(server), stub_(v1::Control::NewStub(channel)) {}

  Result<void> operator()(const Jobs&) {
    const auto listed = list();
    if (!listed) return pass(listed.error());
    if (options_.json) {
      boost::json::array jobs;
      for (const auto& job : listed->jobs()) jobs.emplace_back(to_json(job, false));
      return print({{"jobs", std::move(jobs)}});
    }
    std::vector<const v1::JobState*> jobs;
    for (const auto& job : listed->jobs()) jobs.push_back(&job);
    return print(show_jobs(jobs));
  }

  Result<void> operator()(const Status& status) {
    std::vector<std::string> ids;
    if (status.job.empty()) {
      const auto listed = list();
      if (!listed) return pass(listed.error());
      for (const auto& job : listed->jobs()) ids.push_back(job.id());
    } else {
      ids.push_back(status.job);
    }
    boost::json::array objects;
    std::string text;
    for (const auto& id : ids) {
      const auto job = get(id);
      // One that has ended since it was listed is no error.
      if (!job && job.error().code == Errc::NotFound && status.job.empty()) continue;
      if (!job) return pass(job.error());
      if (options_.json) {
        objects.emplace_back(to_json(job->job(), true));
      } else {
        text += (text.empty() ? "" : "\n") + show_job(job->job());
      }
    }
    if (options_.json) return print({{"jobs", std::move(objects)}});
    return print(text.empty() ? "no jobs\n" : text);
  }

  Result<void> operator()(const Drain& drain) {
    v1::DrainNodeRequest request;
    request.set_job(drain.job);
    request.set_node(drain.node);
    v1::DrainNodeReply reply;
    return steer(drain.job, request, reply, &v1::Control::Stub::DrainNode);
  }
  /// With the round that is there now: however often the request arrives, it restarts once.
  Result<void> operator()(const Restart& restart) {
    const auto job = get(restart.job);
    if (!job) return pass(job.error());
    v1::RestartJobRequest request;
    request.set_job(restart.job);
    if (job->job().has_round()) *request.mutable_round() = job->job().round();
    v1::RestartJobReply reply;
    return steer(restart.job, request, reply, &v1::Control::Stub::RestartJob);
  }
  Result<void> operator()(const Stop& stop) {
    const auto job = get(stop.job);
    if (!job) return pass(job.error());
    v1::StopJobRequest request;
    request.set_job(stop.job);
    if (job->job().has_round()) *request.mutable_round() = job->job().round();
    v1::StopJobReply reply;
    return steer(stop.job, request, reply, &v1::Control::Stub::StopJob);
  }
  Result<void> operator()(const Sizes& sizes) {
    v1::SetSizesRequest request;
    request.set_job(sizes.job);
    request.set_min_nodes(sizes.min);
    request.set_max_nodes(sizes.max);
    v1::SetSizesReply reply;
    return steer(sizes.job, request, reply, &v1::Control::Stub::SetSizes);
  }

  Result<void> operator()(const Watch& watch) {
    // A watch has no deadline: whether somebody answers at all is found out before.
    if (const auto listed = list(); !listed) return pass(listed.error());
    grpc::ClientContext context;
    authorize(context);
    v1::WatchEventsRequest request;
    request.set_job(watch.job);
    const auto reader = stub_->WatchEvents(&context, request);
    v1::WatchedEvent event;
    while (reader->Read(&event)) {
      const auto printed =
          options_.json ? print(to_json(event), kNoEnd) : print(show_event(event), kNoEnd);
      if (!printed) return printed;
    }
    return outcome_of(reader->Finish());
  }

 private:
  void authorize(grpc::ClientContext& context) const {
    context.AddMetadata("authorization", "Bearer " + server_.token);
  }

  /// One call with its deadline.
  template <class Request, class Reply>
  Result<void> call(const Request& request, Reply& reply,
                    grpc::Status (v1::Control::Stub::*method)(grpc::ClientContext*, const Request&,
                                                              Reply*)) {
    grpc::ClientContext context;
    authorize(context);
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::ceil<std::chrono::milliseconds>(options_.timeout));
    return outcome_of(((*stub_).*method)(&context, request, &reply));
  }

  Result<v1::ListJobsReply> list() {
    v1::ListJobsReply reply;
    const auto called = call(v1::ListJobsRequest(), reply, &v1::Control::Stub::ListJobs);
    if (!called) return pass(called.error());
    return reply;
  }

  Result<v1::GetJobReply> get(const std::string& job) {
    v1::GetJobRequest request;
    request.set_job(job);
    v1::GetJobReply reply;
    const auto called = call(request, reply, &v1::Control::Stub::GetJob);
    if (!called) return pass(called.error());
    return reply;
  }

  template <class Request, class Reply>
  Result<void> steer(const std::string& job, const Request& request, Reply& reply,
                     grpc::Status (v1::Control::Stub::*method)(grpc::ClientContext*, const Request&,
                                                               Reply*)) {
    if (const auto called = call(request, reply, method); !called) return called;
    if (options_.json) return print({{"job", printable(job)}, {"done", printable(reply.done())}});
    return print(printable(reply.done()) + "\n");
  }

  /// What a call's status means to the operator: what the server said of the request is the
  /// message; that nobody like it is there is said of the endpoint.
  [[nodiscard]] Result<void> outcome_of(const grpc::Status& status) const {
    const auto at = to_string(server_.endpoint);
    const auto said = printable(status.error_message());
    switch (status.error_code()) {
      case grpc::StatusCode::OK:
        return {};
      case grpc::StatusCode::NOT_FOUND:
        return fail(Errc::NotFound, said);
      case grpc::StatusCode::INVALID_ARGUMENT:
        return fail(Errc::InvalidArgument, said);
      case grpc::StatusCode::ABORTED:
        return fail(Errc::Stale, said);
      case grpc::StatusCode::UNAUTHENTICATED:
        return fail(Errc::InvalidArgument,
                    at + " refuses the call: " + said + "; --token-file names the server's own");
      case grpc::StatusCode::DEADLINE_EXCEEDED:
        return fail(
            Errc::Timeout,
            at + " has not answered within " +
                std::to_string(std::chrono::ceil<std::chrono::seconds>(options_.timeout).count()) +
                " s: is it a rendezvous server of muster?");
      case grpc::StatusCode::UNIMPLEMENTED:
        return fail(
            Errc::Unavailable,
            at + " speaks gRPC, but is no rendezvous server of muster, or too old a one: " + said);
      case grpc::StatusCode::UNAVAILABLE:
        return fail(Errc::Unavailable, at + " ended the connection (" + said +
                                           "): it is shutting down, or is no rendezvous server of "
                                           "muster");
      default:
        return fail(Errc::Unavailable, at + " answered: " + said);
    }
  }

  const Options& options_;
  const FoundServer& server_;
  std::unique_ptr<v1::Control::Stub> stub_;
};

}  // namespace

Result<void> run(const Options& options, const FoundServer& server) {
  const auto channel = connect(server.endpoint, options.timeout);
  if (!channel) return pass(channel.error());
  return std::visit(Asker(options, server, *channel), options.request);
}

}  // namespace muster::ctl

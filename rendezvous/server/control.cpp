#include "rendezvous/server/control.hpp"

#include "base/assert.hpp"
#include "base/posix/server_socket.hpp"
#include "base/text.hpp"
#include "muster/v1/control.grpc.pb.h"
#include "rendezvous/client/secret.hpp"
#include "rendezvous/server/control_call.hpp"
#include "rendezvous/server/control_watch.hpp"
#include "rendezvous/server/control_wire.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <grpc/support/log.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <map>
#include <optional>
#include <utility>

#include <boost/asio/steady_timer.hpp>

namespace muster::rendezvous {
namespace {

/// Requests hold a few names. A longer one is RESOURCE_EXHAUSTED.
constexpr int kLongestRequest = 64 * 1024;
/// Calls at one time on one connection; more wait for those before them.
constexpr int kCallsOfConnection = 32;
/// What gRPC may take for all connections together; then it refuses to read more.
constexpr std::size_t kMemory = 64UL * 1024 * 1024;
/// A connection without a call is closed after that long.
constexpr auto kIdle = std::chrono::minutes(10);
/// A peer that has said nothing for the first is asked, and given up after the second.
constexpr auto kSilence = std::chrono::seconds(20);
constexpr auto kSilencePatience = std::chrono::seconds(10);
/// Peers may ask us likewise, but not more often.
constexpr auto kFewestPings = std::chrono::seconds(5);
/// For peers to take our last words when we stop.
constexpr auto kFarewell = std::chrono::seconds(1);
/// Lines on refused calls in a minute; those beyond are counted, and said with the next.
constexpr std::uint32_t kRefusalLines = 10;

constexpr std::string_view kScheme = "bearer ";

int milliseconds(std::chrono::milliseconds time) { return static_cast<int>(time.count()); }

grpc::Status no_such_job(const std::string& job) {
  return {grpc::StatusCode::NOT_FOUND, "no job '" + printable(job) + "' is known here"};
}

template <class Request>
std::optional<RoundId> believed_round(const Request& request) {
  return request.has_round() ? std::optional(read(request.round())) : std::nullopt;
}

/// A call, before anything is known of what it asks.
struct Caller {
  CallId id;
  std::string connection;  ///< gRPC's name of it: "fd:14".
};

}  // namespace

/// All of it, on the loop; and the service, on gRPC's threads, which touches nothing here but
/// `inbox_`, `token_` and `next_call_`.
class Control::Desk : public std::enable_shared_from_this<Desk> {
 public:
  Desk(boost::asio::io_context& loop, JobBoard& board, Options options, Logger& logger)
      : loop_(loop),
        board_(board),
        options_(std::move(options)),
        logger_(logger),
        inbox_(std::make_shared<Inbox>(loop)),
        watches_(loop, board,
                 {.watchers = options_.watchers, .unread_events = options_.unread_events}),
        service_(*this) {
    MUSTER_ASSERT(!options_.token.empty());
  }
  ~Desk() { stop(); }

  void adopt(posix::Fd socket, std::string peer) {
    if (stopped_ || (!grpc_ && !start())) return posix::hang_up(socket.get());
    peers_[socket.get()] = std::move(peer);
    grpc::AddInsecureChannelFromFd(grpc_.get(), socket.release());
  }

  void noted(const Rendezvous::Note& note) { watches_.noted(note); }
  void ended(const std::string& job, const Verdict& verdict) { watches_.ended(job, verdict); }

  void stop() {
    if (std::exchange(stopped_, true)) return;
    // gRPC ends when all calls were answered: those on the way here, those that wait, those that
    // watch.
    inbox_->close();
    pending_.clear();
    watches_.end_all({grpc::StatusCode::UNAVAILABLE, "the server is shutting down"});
    if (!grpc_) return;
    grpc_->Shutdown(std::chrono::system_clock::now() + kFarewell);
    grpc_->Wait();
    grpc_.reset();
  }

 private:
  /// A command that its job has not answered yet.
  class Pending {
   public:
    explicit Pending(boost::asio::io_context& loop) : patience(loop) {}
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;
    virtual ~Pending() = default;
    virtual void answer(const Result<std::string>& outcome) = 0;
    boost::asio::steady_timer patience;
  };
  template <class Reply>
  class PendingOf final : public Pending {
   public:
    PendingOf(boost::asio::io_context& loop, Responder<Reply> responder)
        : Pending(loop), responder_(std::move(responder)) {}
    void answer(const Result<std::string>& outcome) override {
      if (!outcome) return responder_.fail(to_status(outcome.error()));
      responder_.reply().set_done(printable(*outcome));
      responder_.answer();
    }

   private:
    Responder<Reply> responder_;
  };

  class Service final : public v1::Control::CallbackService {
   public:
    explicit Service(Desk& desk) : desk_(desk) {}

    grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context,
                                       const v1::ListJobsRequest* request,
                                       v1::ListJobsReply* reply) override {
      return desk_.take(*context, *request, *reply, &Desk::list);
    }
    grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context,
                                     const v1::GetJobRequest* request,
                                     v1::GetJobReply* reply) override {
      return desk_.take(*context, *request, *reply, &Desk::get);
    }
    grpc::ServerWriteReactor<v1::WatchedEvent>* WatchEvents(
        grpc::CallbackServerContext* context, const v1::WatchEventsRequest* request) override {
      return desk_.take_watch(*context, *request);
    }
    grpc::ServerUnaryReactor* DrainNode(grpc::CallbackServerContext* context,
                                        const v1::DrainNodeRequest* request,
                                        v1::DrainNodeReply* reply) override {
      return desk_.take(*context, *request, *reply, &Desk::drain);
    }
    grpc::ServerUnaryReactor* RestartJob(grpc::CallbackServerContext* context,
                                         const v1::RestartJobRequest* request,
                                         v1::RestartJobReply* reply) override {
      return desk_.take(*context, *request, *reply, &Desk::restart);
    }
    grpc::ServerUnaryReactor* StopJob(grpc::CallbackServerContext* context,
                                      const v1::StopJobRequest* request,
                                      v1::StopJobReply* reply) override {
      return desk_.take(*context, *request, *reply, &Desk::stop_job);
    }
    grpc::ServerUnaryReactor* SetSizes(grpc::CallbackServerContext* context,
                                       const v1::SetSizesRequest* request,
                                       v1::SetSizesReply* reply) override {
      return desk_.take(*context, *request, *reply, &Desk::set_sizes);
    }

   private:
    Desk& desk_;
  };

  // --- On gRPC's threads.

  template <class Request, class Reply>
  grpc::ServerUnaryReactor* take(grpc::CallbackServerContext& context, const Request& request,
                                 Reply& reply,
                                 void (Desk::*answer)(const Caller&, const Request&,
                                                      Responder<Reply>)) {
    const Caller caller{.id = next_call_++, .connection = context.peer()};
    auto* const call = new UnaryCall(
        [this, inbox = inbox_, id = caller.id] { inbox->put([this, id] { pending_.erase(id); }); });
    Responder<Reply> responder(*call, reply);
    if (const auto refusal = refuse(context)) {
      responder.fail(*refusal);
      report(caller, *refusal);
    } else {
      inbox_->put([this, caller, &request, answer, responder = std::move(responder)]() mutable {
        (this->*answer)(caller, request, std::move(responder));
      });
    }
    return call;
  }

  grpc::ServerWriteReactor<v1::WatchedEvent>* take_watch(grpc::CallbackServerContext& context,
                                                         const v1::WatchEventsRequest& request) {
    const Caller caller{.id = next_call_++, .connection = context.peer()};
    WatchStream* const stream = Watches::make_stream(
        [this, inbox = inbox_, id = caller.id] {
          inbox->put([this, id] { watches_.cancelled(id); });
        },
        [this, inbox = inbox_, id = caller.id](bool ok) {
          inbox->put([this, id, ok] { watches_.written(id, ok); });
        });
    auto* const handle = Watches::to_grpc(stream);
    if (const auto refusal = refuse(context)) {
      Watches::refuse(*stream, *refusal);
      report(caller, *refusal);
    } else {
      inbox_->put([this, caller, job = request.job(), owned = OwnedStream(stream)]() mutable {
        logger_.debug("control watch began job={} peer={}", printable(job), peer_of(caller));
        watches_.begin(caller.id, std::move(owned), job);
      });
    }
    return handle;
  }

  /// Why this caller is not heard; nullopt: it knows the token.
  [[nodiscard]] std::optional<grpc::Status> refuse(
      const grpc::CallbackServerContext& context) const {
    const auto& metadata = context.client_metadata();
    const auto found = metadata.find("authorization");
    if (found == metadata.end()) {
      return grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                          "no token: the metadata 'authorization: Bearer TOKEN' is missing");
    }
    std::string_view shown(found->second.data(), found->second.size());
    const bool bearer =
        shown.size() > kScheme.size() &&
        std::ranges::equal(shown.substr(0, kScheme.size()), kScheme, [](char one, char other) {
          return std::tolower(static_cast<unsigned char>(one)) == other;
        });
    if (bearer) shown.remove_prefix(kScheme.size());
    if (bearer && are_same_secret(shown, options_.token)) return std::nullopt;
    return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "the token is not this server's");
  }

  void report(const Caller& caller, const grpc::Status& refusal) {
    inbox_->put([this, caller, why = refusal.error_message()] { log_refusal(caller, why); });
  }

  // --- On the loop.

  bool start() {
    // gRPC's own lines would go past our log, onto a stream that may block its threads. What they
    // say comes as the status of calls.
    gpr_set_log_function([](gpr_log_func_args*) {});
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    builder.SetMaxReceiveMessageSize(kLongestRequest);
    grpc::ResourceQuota quota("control");
    quota.Resize(kMemory);
    builder.SetResourceQuota(quota);
    const auto set = [&builder](const char* name, int value) {
      builder.AddChannelArgument(name, value);
    };
    set(GRPC_ARG_MAX_CONCURRENT_STREAMS, kCallsOfConnection);
    set(GRPC_ARG_MAX_CONNECTION_IDLE_MS, milliseconds(kIdle));
    set(GRPC_ARG_KEEPALIVE_TIME_MS, milliseconds(kSilence));
    set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, milliseconds(kSilencePatience));
    set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    set(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, milliseconds(kFewestPings));
    set(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // For bulk; it doubles the cost of what is small.
    grpc_ = builder.BuildAndStart();
    if (!grpc_) logger_.error("control: gRPC can't be started: its connections are closed");
    return grpc_ != nullptr;
  }

  [[nodiscard]] std::string peer_of(const Caller& caller) const {
    constexpr std::string_view kPrefix = "fd:";
    if (caller.connection.starts_with(kPrefix)) {
      const auto found = peers_.find(std::atoi(caller.connection.c_str() + kPrefix.size()));
      if (found != peers_.end()) return found->second;
    }
    return caller.connection;
  }

  void log_refusal(const Caller& caller, const std::string& why) {
    const auto now = std::chrono::steady_clock::now();
    if (!refusals_since_ || now - *refusals_since_ > std::chrono::minutes(1)) {
      if (refusals_ > kRefusalLines) {
        logger_.warn("control refused calls, not said one by one: count={}",
                     refusals_ - kRefusalLines);
      }
      refusals_since_ = now;
      refusals_ = 0;
    }
    if (++refusals_ <= kRefusalLines) {
      logger_.warn("control refused a call peer={} reason=\"{}\"", peer_of(caller), why);
    }
  }

  void list(const Caller&, const v1::ListJobsRequest&, Responder<v1::ListJobsReply> responder) {
    for (const auto& view : board_.jobs()) {
      write(view, Extent::Brief, *responder.reply().add_jobs());
    }
    responder.answer();
  }

  void get(const Caller&, const v1::GetJobRequest& request, Responder<v1::GetJobReply> responder) {
    const auto view = board_.job(request.job());
    if (!view) return responder.fail(no_such_job(request.job()));
    write(*view, Extent::Whole, *responder.reply().mutable_job());
    responder.answer();
  }

  void drain(const Caller& caller, const v1::DrainNodeRequest& request,
             Responder<v1::DrainNodeReply> responder) {
    if (request.node().empty()) {
      return responder.fail({grpc::StatusCode::INVALID_ARGUMENT, "the node to drain is missing"});
    }
    steer(caller, "drain", request.job(),
          rendezvous::DrainNode{.node = request.node(), .round = believed_round(request)},
          std::move(responder));
  }
  void restart(const Caller& caller, const v1::RestartJobRequest& request,
               Responder<v1::RestartJobReply> responder) {
    steer(caller, "restart", request.job(),
          rendezvous::RestartJob{.round = believed_round(request)}, std::move(responder));
  }
  void stop_job(const Caller& caller, const v1::StopJobRequest& request,
                Responder<v1::StopJobReply> responder) {
    steer(caller, "stop", request.job(), rendezvous::StopJob{.round = believed_round(request)},
          std::move(responder));
  }
  void set_sizes(const Caller& caller, const v1::SetSizesRequest& request,
                 Responder<v1::SetSizesReply> responder) {
    if (request.min_nodes() == 0 || request.min_nodes() > request.max_nodes()) {
      return responder.fail(
          {grpc::StatusCode::INVALID_ARGUMENT,
           "sizes " + std::to_string(request.min_nodes()) + ":" +
               std::to_string(request.max_nodes()) +
               " make no sense: the minimum is 1 or more, and at most the maximum"});
    }
    steer(caller, "sizes", request.job(),
          rendezvous::SetSizes{.min = request.min_nodes(),
                               .max = request.max_nodes(),
                               .round = believed_round(request)},
          std::move(responder));
  }

  template <class Reply>
  void steer(const Caller& caller, std::string_view name, const std::string& job, Command command,
             Responder<Reply> responder) {
    if (pending_.size() >= options_.commands) {
      return responder.fail({grpc::StatusCode::RESOURCE_EXHAUSTED,
                             "as many commands as the server takes (" +
                                 std::to_string(options_.commands) + ") are unanswered"});
    }
    logger_.info("control command={} job={} peer={}", name, printable(job), peer_of(caller));
    auto pending = std::make_unique<PendingOf<Reply>>(loop_, std::move(responder));
    pending->patience.expires_after(options_.patience);
    pending->patience.async_wait(
        [weak = weak_from_this(), id = caller.id](const boost::system::error_code& error) {
          const auto self = error ? nullptr : weak.lock();
          if (!self) return;
          self->answered(id, fail(Errc::Timeout, "the job has not answered in time: look again"));
        });
    pending_.emplace(caller.id, std::move(pending));
    board_.command(job, std::move(command),
                   [weak = weak_from_this(), id = caller.id](const Result<std::string>& outcome) {
                     if (const auto self = weak.lock()) self->answered(id, outcome);
                   });
  }

  void answered(CallId id, const Result<std::string>& outcome) {
    auto pending = pending_.extract(id);
    if (!pending.empty()) pending.mapped()->answer(outcome);  // Empty: the caller has gone.
  }

  boost::asio::io_context& loop_;
  JobBoard& board_;
  const Options options_;
  Logger& logger_;
  const std::shared_ptr<Inbox> inbox_;
  std::atomic<CallId> next_call_{1};
  std::map<CallId, std::unique_ptr<Pending>> pending_;
  Watches watches_;
  std::map<int, std::string> peers_;  // By descriptor; overwritten when that is used again.
  std::optional<TimePoint> refusals_since_;
  std::uint32_t refusals_ = 0;
  bool stopped_ = false;
  Service service_;
  std::unique_ptr<grpc::Server> grpc_;
};

Control::Control(boost::asio::io_context& loop, JobBoard& board, Options options, Logger& logger)
    : desk_(std::make_shared<Desk>(loop, board, std::move(options), logger)) {}
Control::~Control() { desk_->stop(); }

void Control::adopt(posix::Fd socket, std::string peer) {
  desk_->adopt(std::move(socket), std::move(peer));
}
void Control::noted(const Rendezvous::Note& note) { desk_->noted(note); }
void Control::ended(const std::string& job, const Verdict& verdict) { desk_->ended(job, verdict); }
void Control::stop() { desk_->stop(); }

}  // namespace muster::rendezvous

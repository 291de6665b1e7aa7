#include "launcher/meeting_point.hpp"

#include "base/exit_codes.hpp"
#include "base/posix/interfaces.hpp"
#include "base/posix/signals.hpp"
#include "base/posix/socket.hpp"
#include "base/text.hpp"
#include "rendezvous/core/address.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>

namespace muster::launcher {
namespace asio = boost::asio;
namespace {

using std::chrono::steady_clock;

/// Between two looks at an endpoint where nothing answers yet.
constexpr Duration kPause = std::chrono::milliseconds(100);
/// Where even its name is unknown: resolvers should not be asked ten times a second.
constexpr Duration kPauseOfNames = std::chrono::seconds(1);
/// For one of them.
constexpr Duration kProbePatience = std::chrono::seconds(2);

/// For the agents that are left when this node's part is over: as long as the server itself would
/// wait for silent ones, and a little.
Duration farewell_patience(Duration lease) { return 2 * lease + std::chrono::seconds(5); }

}  // namespace

MeetingPoint::MeetingPoint(asio::io_context& loop, Settings settings,
                           const agent::KeeperLink& keeper, Logger& logger)
    : loop_(loop),
      settings_(std::move(settings)),
      keeper_(keeper),
      logger_(logger),
      began_(steady_clock::now()),
      pause_(loop) {}

MeetingPoint::~MeetingPoint() = default;

void MeetingPoint::attend(Handlers handlers) {
  if (handlers.on_order) {
    handlers.on_order = [this, on_order = std::move(handlers.on_order)](const Order& order) {
      const auto* part = std::get_if<Assignment>(&order);
      if (part == nullptr) {
        on_order(order);
        return;
      }
      node_rank_ = part->node_rank;
      auto ours = *part;
      if (ours.store_on_server) ours.master = store_endpoint();
      on_order(ours);
    };
  }
  handlers_ = std::move(handlers);
  if (attendance_) attendance_->attend(handlers_);
}

/// From the loop, unless we are gone by then.
void MeetingPoint::later(std::function<void()> what) {
  asio::post(loop_, life_.guard(std::move(what)));
}

/// Where this node's workers find the server's store: at the one of its addresses that has
/// answered.
Endpoint MeetingPoint::store_endpoint() const {
  return {attendance_->server_address(), settings_.meeting.server.port};
}

void MeetingPoint::report(Report report) {
  if (attendance_) {
    attendance_->report(std::move(report));
    return;
  }
  const bool begins = std::holds_alternative<Hello>(report);
  const bool leaves = std::holds_alternative<Leaving>(report);
  unsaid_.push_back(std::move(report));
  if (begins) later([this] { look(); });
  // Whoever leaves hosts nothing any more: the attendance knows how to leave.
  if (leaves) later([this] { join(settings_.meeting.server); });
}

std::string MeetingPoint::local_address() const {
  return attendance_ ? attendance_->local_address() : std::string();
}

void MeetingPoint::say_farewell(const std::string& reason) {
  if (attendance_) attendance_->say_farewell(reason);
}

void MeetingPoint::look() {
  if (attendance_ || is_over_) return;
  lookup_ = std::make_unique<rendezvous::Lookup>(
      loop_, settings_.meeting.server,
      [this](Result<std::vector<posix::SocketAddress>> addresses) { found(std::move(addresses)); });
}

void MeetingPoint::found(Result<std::vector<posix::SocketAddress>> addresses) {
  if (attendance_ || is_over_) return;
  addresses_.clear();
  own_.clear();
  if (addresses) {
    for (const auto& address : *addresses) {
      auto host = posix::to_endpoint(address).host;
      if (rendezvous::is_loopback(host) || !posix::interface_of(host).empty()) own_.push_back(host);
      addresses_.push_back(std::move(host));
    }
  }
  const bool is_loopback_only =
      !addresses_.empty() && std::ranges::all_of(addresses_, rendezvous::is_loopback);
  if (settings_.meeting.is_elsewhere && is_loopback_only) {
    give_up(kOwnError, fmt::format("{}: {} is {} here, but another machine: mend what this machine "
                                   "takes the name for, or give --rdzv-endpoint",
                                   settings_.meeting.origin, settings_.meeting.server.host,
                                   addresses_.front()));
    return;
  }
  const auto hosting = hosting_of({.owns_address = owns(addresses_, own_),
                                   .is_host = settings_.meeting.is_host,
                                   .node_rank = settings_.attendance.hello.node_rank});
  if (hosting == Hosting::AtOnce || (hosting == Hosting::AfterSilence && is_silent_for_long())) {
    if (try_to_host()) return;
  }
  if (!addresses) {
    // It may be about to become known: a pod's name is when the pod is.
    look_again(addresses.error().message);
  } else if (hosting == Hosting::Never) {
    join(settings_.meeting.server);
  } else {
    probe();
  }
}

bool MeetingPoint::is_silent_for_long() const {
  // A machine that has the endpoint's address hosts after this silence though it was given a rank
  // other than 0: it goes before those that only have rank 0.
  const auto silence = own_.empty() ? 2 * kSilenceBeforeHosting : kSilenceBeforeHosting;
  return steady_clock::now() - began_ >= silence;
}

/// True: there is nothing left to look for.
bool MeetingPoint::try_to_host() {
  const auto& endpoint = settings_.meeting.server;
  const bool is_numeric = posix::numeric_address(endpoint).has_value();
  const auto binding = binding_of(
      is_numeric && !addresses_.empty() ? addresses_.front() : endpoint.host, addresses_, own_);
  auto& hello = settings_.attendance.hello;
  // A lone node's server ends with it: there is nobody whose ranks could be given away.
  const bool is_alone = hello.settings.max_nodes == 1;
  auto server = EmbeddedServer::start(loop_, binding, endpoint.port, settings_.server, logger_);
  if (!server && server.error().code == Errc::InvalidArgument) {
    trouble_ = server.error().message;  // The port is taken, mostly: by whom, a probe tells.
    return false;
  }
  if (!server) {
    give_up(kOwnError, settings_.meeting.origin +
                           ": this node can't host the rendezvous: " + server.error().message);
    return true;
  }
  server_ = std::move(*server);
  logger_.info("hosting the rendezvous at {} for job {}", to_string(endpoint), hello.job);
  if (is_alone) {
    hello.settings.lease = Duration::zero();
    keeper_.page.renew_for_ever();
  }
  hello.hosts_server = true;
  join(server_->endpoint());
  return true;
}

/// Whether a server is there already.
void MeetingPoint::probe() {
  rendezvous::LineOptions options{.server = settings_.meeting.server,
                                  .token = settings_.attendance.token,
                                  .local_address = settings_.attendance.local_address,
                                  .patience = kProbePatience};
  rendezvous::Line::Handlers handlers;
  handlers.on_up = [this](const rendezvous::LineFacts&) { join(settings_.meeting.server); };
  handlers.on_message = [](const ServerMessage&) {};
  handlers.on_down = [this](const Error& error) {
    // On this machine's own port nothing but the user can change that.
    const bool is_stranger = error.code == Errc::InvalidArgument && !own_.empty();
    if (is_stranger) {
      const auto holder = posix::port_holder(settings_.meeting.server.port);
      give_up(kOwnError, settings_.meeting.origin + ": " + error.message +
                             (holder.empty() ? "" : "; it is process " + holder) +
                             ": give another port, the same on all nodes");
      return;
    }
    look_again(error.message);
  };
  probe_ = rendezvous::Line::dial(loop_, std::move(options), std::move(handlers), logger_);
}

void MeetingPoint::look_again(const std::string& cause) {
  const std::string why = trouble_.empty() ? cause : cause + "; " + trouble_;
  const auto patience = settings_.attendance.hello.settings.join_timeout;
  const auto waited = steady_clock::now() - began_;
  const auto& meeting = settings_.meeting;
  if (waited >= patience) {
    give_up(kRequeue, fmt::format("{} {}: no rendezvous in {:.0f} s (join_timeout): {}",
                                  meeting.origin, to_string(meeting.server),
                                  std::chrono::duration<double>(waited).count(), why));
    return;
  }
  if (why != said_) {
    said_ = why;
    logger_.info("waiting for a rendezvous server at {}, up to {:.0f} s: {}",
                 to_string(meeting.server), std::chrono::duration<double>(patience).count(),
                 printable(why));
  }
  pause_.expires_after(std::min<Duration>(addresses_.empty() ? kPauseOfNames : kPause,
                                          patience - std::chrono::duration_cast<Duration>(waited)));
  pause_.async_wait(life_.guard([this](const boost::system::error_code& error) {
    if (!error) look();
  }));
}

void MeetingPoint::join(const Endpoint& server) {
  if (attendance_ || is_over_) return;
  lookup_.reset();
  pause_.cancel();
  auto settings = settings_.attendance;
  settings.server = server;
  // Several agents on one machine go the same way to the endpoint, hosting or not: so they are
  // known to be on one.
  if (!addresses_.empty()) {
    settings.hello.machine += "/" + posix::source_address({addresses_.front(), server.port});
  }
  auto attendance = agent::RemoteAttendance::create(loop_, std::move(settings), keeper_, logger_);
  if (!attendance) {
    give_up(kOwnError, attendance.error().message);
    return;
  }
  attendance_ = std::move(*attendance);
  attendance_->attend(handlers_);
  for (auto& report : std::exchange(unsaid_, {})) attendance_->report(std::move(report));
  later([this] { probe_.reset(); });  // Not from within its own handler's call.
}

void MeetingPoint::give_up(int exit_code, const std::string& message) {
  is_over_ = true;
  if (handlers_.on_giving_up) handlers_.on_giving_up(exit_code, message);
}

void MeetingPoint::see_off(const std::vector<int>& signals) {
  if (!server_ || server_->is_over()) return;
  attendance_.reset();  // It has left.
  is_over_ = true;
  server_->abandon("its launcher ends");
  if (server_->is_over()) return;
  auto source = posix::SignalSource::open(signals);
  if (!source) return;
  auto copy = posix::duplicate(source->descriptor());
  if (!copy) return;
  loop_.restart();
  asio::posix::stream_descriptor interrupted(loop_, copy->release());
  interrupted.async_wait(asio::posix::stream_descriptor::wait_read,
                         life_.guard([this](const boost::system::error_code& error) {
                           if (!error) loop_.stop();
                         }));
  pause_.expires_after(farewell_patience(settings_.attendance.hello.settings.lease));
  pause_.async_wait(life_.guard([this](const boost::system::error_code& error) {
    if (!error) loop_.stop();
  }));
  server_->on_over([this] { loop_.stop(); });
  loop_.run();
}

}  // namespace muster::launcher

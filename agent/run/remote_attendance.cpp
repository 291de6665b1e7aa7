#include "agent/run/remote_attendance.hpp"

#include "agent/run/memory_cgroup.hpp"
#include "base/posix/fork.hpp"
#include "base/posix/interfaces.hpp"
#include "base/text.hpp"
#include "rendezvous/client/farewell.hpp"
#include "rendezvous/client/wire.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include <boost/asio/post.hpp>

namespace muster::agent {
namespace asio = boost::asio;
namespace {

/// A connection that does not stand after half a lease is not worth waiting for: another attempt
/// gets through sooner, should the way be open again. Within these bounds.
constexpr Duration kShortestDial = std::chrono::seconds(2);
constexpr Duration kLongestDial = std::chrono::seconds(10);

/// As the keeper's.
constexpr Duration kFarewellPatience = std::chrono::seconds(2);

bool is_unspecified(const Endpoint& endpoint) {
  return endpoint.host.empty() || endpoint.host == "0.0.0.0" || endpoint.host == "::";
}

/// An address of another machine as one says it here, where `local` is our end of the way to it:
/// the scope of a link-local address is the name of an interface, and each machine has its own
/// names.
std::string seen_from(const std::string& local, std::string host) {
  const auto scope = host.find('%');
  if (scope == std::string::npos) return host;
  const auto ours = posix::interface_of(local);
  return ours.empty() || ours == "lo" ? host : host.substr(0, scope + 1) + ours;
}

}  // namespace

Result<std::unique_ptr<RemoteAttendance>> RemoteAttendance::create(asio::io_context& loop,
                                                                   Settings settings,
                                                                   const KeeperLink& keeper,
                                                                   Logger& logger) {
  auto timer = posix::BootTimer::create();
  if (!timer) return pass(timer.error());
  auto copy = posix::duplicate(timer->descriptor());
  if (!copy) return pass(copy.error());
  std::unique_ptr<RemoteAttendance> made(
      new RemoteAttendance(loop, std::move(settings), keeper, logger, *std::move(timer)));
  made->timer_wait_.assign(copy->release());
  made->watch_timer();
  return made;
}

RemoteAttendance::RemoteAttendance(asio::io_context& loop, Settings settings,
                                   const KeeperLink& keeper, Logger& logger, posix::BootTimer timer)
    : loop_(loop),
      settings_(std::move(settings)),
      keeper_(keeper),
      logger_(logger),
      timer_(std::move(timer)),
      timer_wait_(loop),
      memory_(limited_memory_cgroup(posix::cgroups_of(posix::own_pid(), "memory"))) {
  farewell_ = {.server = {.host = {}, .port = settings_.server.port},
               .token = settings_.token,
               .farewell = {.job = settings_.hello.job,
                            .secret = settings_.secret,
                            .round = std::nullopt,
                            .reason = "its launcher left",
                            .preempted = false}};
}

RemoteAttendance::~RemoteAttendance() = default;

void RemoteAttendance::report(Report report) {
  asio::post(loop_, life_.guard([this, report = std::move(report)] {
    if (const auto* hello = std::get_if<Hello>(&report)) {
      begin(*hello);
      return;
    }
    if (const auto* leaving = std::get_if<Leaving>(&report)) {
      farewell_.farewell.reason =
          leaving->preempted ? "its machine was claimed" : "its launcher was told to end";
      farewell_.farewell.preempted = leaving->preempted;
      (void)leave_note();  // It fitted before.
    }
    feed(Attendee::Reported{report});
  }));
}

/// Completes the launcher's Hello by what the agent knows, and dials.
void RemoteAttendance::begin(const Hello& hello) {
  if (!note_will_fit()) {
    if (handlers_.on_giving_up)
      handlers_.on_giving_up(1, "the job's name and the token are too long together");
    return;
  }
  auto& whole = settings_.hello;
  whole.slots = hello.slots;
  whole.role = hello.role;
  whole.store = hello.store;
  whole.addresses = hello.addresses;
  // More than a message may hold; whoever comes from another one knocks first.
  if (whole.addresses.size() > rendezvous::kMaxAddresses)
    whole.addresses.resize(rendezvous::kMaxAddresses);
  attendee_.emplace(Attendee::Settings{
      .hello = whole, .server = to_string(settings_.server), .seed = settings_.seed});
  perform(attendee_->start(posix::boot_now()));
  arm_timer();
}

void RemoteAttendance::feed(Attendee::Event event) {
  if (!attendee_) return;
  events_.push_back(std::move(event));
  if (is_feeding_) return;
  is_feeding_ = true;
  while (!events_.empty()) {
    const auto next = std::move(events_.front());
    events_.pop_front();
    perform(attendee_->step(posix::boot_now(), next));
  }
  is_feeding_ = false;
  arm_timer();
}

void RemoteAttendance::perform(const std::vector<Attendee::Action>& actions) {
  for (const auto& action : actions) {
    std::visit([this](const auto& what) { act(what); }, action);
  }
}

void RemoteAttendance::act(const Attendee::Dial& dial) {
  const auto name = dial.line;
  const auto half_lease = settings_.hello.settings.lease / 2;
  rendezvous::LineOptions options{
      .server = settings_.server,
      .token = settings_.token,
      .local_address = settings_.local_address,
      .patience = std::clamp<Duration>(half_lease, kShortestDial, kLongestDial)};
  rendezvous::Line::Handlers handlers;
  handlers.on_up = [this, name](const rendezvous::LineFacts& ends) {
    connections_[name.value].ends = ends;
    local_ = ends.local;
    farewell_.server.host = ends.peer;
    (void)leave_note();
    logger_.debug("connected to the rendezvous from={} to={}", ends.local, ends.peer);
    feed(Attendee::Connected{name});
  };
  handlers.on_message = [this, name](const ServerMessage& message) {
    is_welcome_ = is_welcome_ || std::holds_alternative<Welcome>(message);
    feed(Attendee::Received{name, message});
  };
  handlers.on_down = [this, name](const Error& error) {
    logger_.debug("no connection to the rendezvous reason=\"{}\"", printable(error.message));
    forget(name.value);
    feed(Attendee::Dropped{name, error.message});
  };
  auto line = rendezvous::Line::dial(loop_, std::move(options), std::move(handlers), logger_);
  connections_[name.value].line = std::move(line);
}

void RemoteAttendance::act(const Attendee::HangUp& hang_up) { forget(hang_up.line.value); }

void RemoteAttendance::act(const Attendee::Transmit& transmit) {
  const auto found = connections_.find(transmit.line.value);
  if (found == connections_.end()) return;
  auto message = transmit.message;
  const auto place = [&found](Endpoint& store) {
    if (is_unspecified(store)) store.host = found->second.ends.local;
  };
  if (auto* report = std::get_if<Report>(&message)) {
    if (auto* hello = std::get_if<Hello>(report)) place(hello->store);
    if (auto* empty = std::get_if<Empty>(report)) place(empty->next_store);
  }
  auto* const ping = std::get_if<Ping>(&message);
  if (ping != nullptr && memory_) {
    ping->memory_used = memory_in_use(*memory_);
    ping->memory_limit = memory_limit(*memory_).value_or(0);
  }
  found->second.line->send(message);
}

void RemoteAttendance::act(const Attendee::Renew& renew) {
  const auto ends = keeper_.page.lease_ends();
  if (attendee_->holds() && ends && posix::boot_now() >= *ends) {
    feed(Attendee::Lapsed{});  // We were frozen since the decision: the keeper has killed.
    return;
  }
  keeper_.page.renew(renew.ends);
}

void RemoteAttendance::act(const Attendee::HalfLease&) {
  logger_.warn("half of the lease is over without an answer from the rendezvous; connecting anew");
  if (handlers_.on_half_lease) handlers_.on_half_lease();
}

void RemoteAttendance::act(const Attendee::Fence& fence) {
  // Nothing starts any more, and the keeper kills with us.
  keeper_.page.renew(posix::boot_now());
  logger_.error("this node's ranks are no longer its own: killing the workers reason=\"{}\"",
                printable(fence.reason));
  if (handlers_.on_fence) handlers_.on_fence(fence.reason);
}

void RemoteAttendance::act(const Attendee::Deliver& deliver) {
  const auto* assignment = std::get_if<Assignment>(&deliver.order);
  if (assignment == nullptr) {
    if (handlers_.on_order) handlers_.on_order(deliver.order);
    return;
  }
  farewell_.farewell.round = assignment->round;
  (void)leave_note();
  auto ours = *assignment;
  ours.master.host = seen_from(local_, std::move(ours.master.host));
  if (handlers_.on_order) handlers_.on_order(ours);
}

void RemoteAttendance::act(const Attendee::Say& say) {
  if (say.text == said_) return;
  said_ = say.text;
  logger_.info("{}", printable(say.text));
}

void RemoteAttendance::act(const Attendee::Leave& leave) {
  // The job is over and whoever could be told knows it; or nobody ever knew of us.
  if (leave.verdict || !is_welcome_) {
    (void)keeper_.farewell.write({});
    farewell_.farewell.secret.clear();
  }
  if (leave.verdict) {
    if (handlers_.on_order) handlers_.on_order(*leave.verdict);
  } else if (handlers_.on_giving_up) {
    handlers_.on_giving_up(leave.exit_code, leave.message);
  }
}

void RemoteAttendance::say_farewell(const std::string& reason) {
  if (!is_farewell_due()) return;
  farewell_.farewell.reason = reason;
  const auto told = rendezvous::say_farewell(farewell_.server, farewell_.token, farewell_.farewell,
                                             kFarewellPatience);
  if (!told) logger_.warn("{}", printable(told.error().message));
}

void RemoteAttendance::arm_timer() { timer_.arm(attendee_->next_deadline()); }

void RemoteAttendance::watch_timer() {
  timer_wait_.async_wait(asio::posix::stream_descriptor::wait_read,
                         life_.guard([this](const boost::system::error_code& error) {
                           if (error) return;
                           timer_.arm(std::nullopt);
                           feed(Attendee::Ticked{});
                           watch_timer();
                         }));
}

void RemoteAttendance::forget(std::uint64_t line) { connections_.erase(line); }

/// Where a server may know of us, and lives on without us. Before a line stood none does, and
/// nobody should look a name up to say farewell: a resolver may hang.
bool RemoteAttendance::is_farewell_due() const {
  return !farewell_.farewell.secret.empty() && !farewell_.server.host.empty() &&
         !settings_.hello.hosts_server;
}

/// False: it is too long.
bool RemoteAttendance::leave_note() {
  return !is_farewell_due() || keeper_.farewell.write(encode(farewell_));
}

/// With any server's address, and whatever reason we give.
bool RemoteAttendance::note_will_fit() const {
  constexpr std::size_t kLongest = 256;  // Of address and reason together.
  return encode(farewell_).size() + kLongest <= posix::SharedNote::kCapacity;
}

}  // namespace muster::agent

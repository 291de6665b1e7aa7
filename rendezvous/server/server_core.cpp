#include "base/text.hpp"
#include "rendezvous/server/server_loop.hpp"

#include <chrono>

namespace muster::rendezvous {

void Server::Loop::feed(Rendezvous::Event event) {
  events_.push_back(std::move(event));
  pump();
}

/// Performing an action may lose a link, which is the core's next event.
void Server::Loop::pump() {
  if (is_pumping_) return;
  is_pumping_ = true;
  while (!events_.empty() && !is_stopped_) {
    const auto event = std::move(events_.front());
    events_.pop_front();
    for (auto& action : core_.step(std::chrono::steady_clock::now(), event)) {
      if (is_stopped_) break;
      perform(action);
    }
  }
  is_pumping_ = false;
}

void Server::Loop::perform(Rendezvous::Action& action) {
  std::visit([this](auto& each) { act(each); }, action);
}

void Server::Loop::act(Rendezvous::Send& action) {
  Link* const link = links_.find(action.link);
  if (link == nullptr || !link->is_known) return;
  if (auto* const welcome = std::get_if<Welcome>(&action.message)) {
    if (welcome->version.empty()) welcome->version = MUSTER_VERSION;
  }
  send(*link, action.message);
}

void Server::Loop::act(Rendezvous::Acknowledge& action) {
  Link* const link = links_.find(action.link);
  if (link == nullptr || link->stage != Link::Stage::Parting) return;
  link->is_known = false;
  send(*link, PartingSeen{});
  if (Link* const left = links_.find(action.link)) see_off(*left);
}

void Server::Loop::act(Rendezvous::Close& action) {
  Link* const link = links_.find(action.link);
  if (link == nullptr || !link->is_known) return;
  if (link->stage == Link::Stage::Attending) --attendances_;
  link->is_known = false;
  see_off(*link);
}

void Server::Loop::act(Rendezvous::Answer& action) {
  const auto at = commands_.find(action.id.value);
  if (at == commands_.end()) return;
  const auto done = std::move(at->second);
  commands_.erase(at);
  done(std::move(action.outcome));
}

void Server::Loop::act(Rendezvous::Note& action) {
  auto level = spdlog::level::info;
  switch (action.level) {
    case Rendezvous::Note::Level::Debug:
      level = spdlog::level::debug;
      break;
    case Rendezvous::Note::Level::Info:
      break;
    case Rendezvous::Note::Level::Warn:
      level = spdlog::level::warn;
      break;
  }
  if (action.job.empty()) {
    logger_.log(level, "{}", printable(action.text));
  } else {
    logger_.log(level, "job {}: {}", printable(action.job), printable(action.text));
  }
  if (on_note) on_note(action);
}

/// Whether the endpoint's store may be this job's workers' (JobSettings::store_on_server).
bool Server::Loop::may_keep_store(const std::string& job) const {
  return !options_.serves_store && (!store_job_ || *store_job_ == job);
}

/// Why not, and what to do.
std::string Server::Loop::store_is_taken() const {
  return "with --rdzv-backend static the store of the job's workers is on the endpoint's port, and "
         "there it is " +
         (store_job_ ? "job " + printable(*store_job_) + "'s"
                     : std::string("everybody's: a standing server (musterd) serves it")) +
         ". Give --rdzv-backend c10d, or an endpoint that is one of the job's own nodes";
}

void Server::Loop::act(Rendezvous::OpenStore& action) {
  if (!may_keep_store(action.job)) {  // Its nodes greeted before the other job took it.
    logger_.warn("job {}: {}", printable(action.job), store_is_taken());
    return;
  }
  store::Door door = options_.store.door;
  door.is_open = false;
  door.secret = action.secret;
  for (const auto& address : action.admitted) {
    if (const auto parsed = store::parse_address(address)) door.admitted.insert(*parsed);
  }
  auto store = make_store(std::move(door));
  if (!store) {
    logger_.error("job {}: open the endpoint's store: {}", action.job, store.error().message);
    return;
  }
  store_ = *std::move(store);
  store_job_ = action.job;
}

void Server::Loop::act(Rendezvous::CloseStore& action) {
  if (store_job_ != action.job) return;
  store_.reset();
  store_job_.reset();
}

void Server::Loop::act(Rendezvous::Ended& action) { ended_.push_back(std::move(action)); }

/// Its handler may stop the server, so it comes last: the agents have got their dismissal then.
void Server::Loop::tell_ended() {
  for (const auto& each : std::exchange(ended_, {})) {
    if (on_ended && !is_stopped_) on_ended(each.job, each.verdict);
  }
}

/// Leaves it alone where it would ring too early: pings put the next deadline off all the time.
void Server::Loop::arm_core_timer() {
  if (is_stopped_) return;
  const auto next = core_.next_deadline();
  if (!next || (core_timer_at_ && *core_timer_at_ <= *next)) return;
  core_timer_at_ = next;
  core_timer_.expires_at(*next);
  core_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || self->is_stopped_) return;
    self->core_timer_at_.reset();
    const auto due = self->core_.next_deadline();
    if (due && *due <= std::chrono::steady_clock::now()) self->feed(Rendezvous::Ticked{});
    self->finish_turn();
  });
}

void Server::Loop::abandon(const std::string& reason) {
  if (is_stopped_) return;
  const auto self = shared_from_this();
  feed(Rendezvous::Ending{reason});
  if (!is_pumping_) finish_turn();
}

void Server::Loop::command(std::string job, Command command,
                           std::function<void(Result<std::string>)> done) {
  if (is_stopped_) return done(fail(Errc::Cancelled, "the server is stopping"));
  const auto self = shared_from_this();  // `done` may let the server go.
  const CommandId id{++last_command_};
  commands_.emplace(id.value, std::move(done));
  feed(Rendezvous::Commanded{id, std::move(job), std::move(command)});
  if (!is_pumping_) finish_turn();
}

}  // namespace muster::rendezvous

#include "launcher/embedded_server.hpp"

#include "base/posix/boot_clock.hpp"
#include "base/posix/fork.hpp"
#include "base/posix/private_file.hpp"
#include "base/posix/socket.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace muster::launcher {
namespace {

/// The first of them that can be had, or all of them.
Result<std::vector<posix::Fd>> listen(const Binding& binding, std::uint16_t port) {
  std::vector<posix::Fd> listeners;
  std::optional<Error> trouble;
  for (const auto& host : binding.hosts) {
    auto listener = rendezvous::Server::listen({host, port});
    if (listener) {
      listeners.push_back(std::move(*listener));
      if (!binding.all) break;
      continue;
    }
    // A name may have addresses of a family that this machine does not speak: one is enough.
    const bool is_taken = listener.error().code == Errc::InvalidArgument;
    if (is_taken) return pass(listener.error());
    if (!trouble) trouble = listener.error();
  }
  if (listeners.empty()) return pass(*trouble);
  return listeners;
}

/// Whether the server may know itself to be the first at its endpoint: it finds no marker, and the
/// machine has been up for as long as an older server's agents could have held on. Leaves the
/// marker.
bool is_first(const std::string& marker, Duration recovery) {
  if (marker.empty() || !posix::leave_marker(marker)) return false;
  return posix::boot_now().time_since_epoch() > recovery;
}

}  // namespace

Result<std::unique_ptr<EmbeddedServer>> EmbeddedServer::start(boost::asio::io_context& loop,
                                                              const Binding& binding,
                                                              std::uint16_t port, Settings settings,
                                                              Logger& logger) {
  auto listeners = listen(binding, port);
  if (!listeners) return pass(listeners.error());

  rendezvous::Server::Options options;
  options.listeners = std::move(*listeners);
  options.core.max_lease = settings.lease;
  options.core.first_here = is_first(settings.marker, settings.lease + settings.lease / 4);
  options.core.bound_at = std::chrono::steady_clock::now();
  options.core.epoch_bits = settings.epoch_bits;
  options.core.seed = settings.seed;
  options.core.limits.jobs = 1;
  options.core.only_job = settings.job;
  options.token = settings.token;
  options.store = settings.store;
  options.store.door.is_open = false;
  options.store.door.allowed = settings.store_allow;
  options.serves_store = false;
  auto server = rendezvous::Server::start(loop, std::move(options), logger);
  if (!server) return pass(server.error());
  return std::unique_ptr<EmbeddedServer>(
      new EmbeddedServer(loop, std::move(*server), std::move(settings), logger));
}

EmbeddedServer::EmbeddedServer(boost::asio::io_context& loop,
                               std::unique_ptr<rendezvous::Server> server, Settings settings,
                               Logger& logger)
    : server_(std::move(server)), settings_(std::move(settings)), board_(*server_) {
  rendezvous::Control::Options options;
  options.token = settings_.token.value_or(settings_.control_token);
  control_ = std::make_unique<rendezvous::Control>(loop, board_, std::move(options), logger);
  server_->on_grpc([this](posix::Fd socket, std::string peer) {
    control_->adopt(std::move(socket), std::move(peer));
  });
  server_->on_note([this](const rendezvous::Rendezvous::Note& note) { control_->noted(note); });
  server_->on_ended([this](const std::string& job, const Verdict& verdict) {
    control_->ended(job, verdict);
    if (job != settings_.job) return;
    is_over_ = true;
    if (on_over_) on_over_();
  });

  rendezvous::LocalServer local{.pid = posix::own_pid(),
                                .program = "muster",
                                .endpoint = endpoint(),
                                .token = std::nullopt,
                                .job = settings_.job};
  if (!settings_.token) local.token = settings_.control_token;
  auto file = rendezvous::LocalServerFile::create(settings_.runtime_folder, local);
  if (file) {
    file_ = std::move(*file);
  } else {
    logger.warn("musterctl will not find this job by itself: {}", file.error().message);
  }
}

void EmbeddedServer::abandon(const std::string& reason) {
  const auto view = server_->job(settings_.job);
  // Who is cut off may still run it: the next server has to wait for that one.
  leaves_marker_ = view && view->round && !view->verdict;
  server_->abandon(reason);
  if (server_->job_count() == 0) is_over_ = true;
}

EmbeddedServer::~EmbeddedServer() {
  control_->stop();
  // Nobody holds a round of the job any more, so that the next one need not wait for anybody.
  // Before the port is free: from then on the marker may be that of the next server.
  if (is_over_ && !leaves_marker_ && !settings_.marker.empty())
    posix::remove_marker(settings_.marker);
  server_->stop();
}

Endpoint EmbeddedServer::endpoint() const { return posix::dialled_from_here(server_->endpoint()); }

}  // namespace muster::launcher

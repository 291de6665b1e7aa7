#include "rendezvous/server/server.hpp"

#include "rendezvous/server/server_loop.hpp"

namespace muster::rendezvous {

Result<std::unique_ptr<Server>> Server::start(boost::asio::io_context& loop, Options options,
                                              Logger& logger) {
  auto started = Loop::start(loop, std::move(options), logger);
  if (!started) return pass(std::move(started.error()));
  return std::unique_ptr<Server>(new Server(*std::move(started)));
}

Server::Server(std::shared_ptr<Loop> loop) : loop_(std::move(loop)) {}

Server::~Server() { loop_->stop(); }

Endpoint Server::endpoint() const { return loop_->endpoint(); }

void Server::on_note(std::function<void(const Rendezvous::Note&)> handler) {
  loop_->on_note = std::move(handler);
}

void Server::on_ended(std::function<void(const std::string&, const Verdict&)> handler) {
  loop_->on_ended = std::move(handler);
}

void Server::on_grpc(std::function<void(posix::Fd, std::string)> handler) {
  loop_->on_grpc = std::move(handler);
}

void Server::command(std::string job, Command command,
                     std::function<void(Result<std::string>)> done) {
  loop_->command(std::move(job), std::move(command), std::move(done));
}

void Server::abandon(const std::string& reason) { loop_->abandon(reason); }

std::size_t Server::job_count() const { return loop_->job_count(); }

std::vector<JobView> Server::jobs() const { return loop_->jobs(); }

std::optional<JobView> Server::job(const std::string& id) const { return loop_->job(id); }

std::optional<Archive::Ended> Server::ended(const std::string& id) const {
  return loop_->ended(id);
}

Server::Stats Server::stats() const { return loop_->stats(); }

void Server::retire() { loop_->retire(); }

void Server::stop() { loop_->stop(); }

}  // namespace muster::rendezvous

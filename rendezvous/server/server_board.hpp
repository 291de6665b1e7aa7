#pragma once

#include "rendezvous/server/job_board.hpp"
#include "rendezvous/server/server.hpp"

#include <utility>

namespace muster::rendezvous {

/// A server's jobs, for Control. The server outlives it.
class ServerBoard final : public JobBoard {
 public:
  explicit ServerBoard(Server& server) : server_(server) {}

  [[nodiscard]] std::vector<JobView> jobs() const override { return server_.jobs(); }
  [[nodiscard]] std::optional<JobView> job(const std::string& id) const override {
    return server_.job(id);
  }
  void command(std::string job, Command command,
               std::function<void(Result<std::string>)> done) override {
    server_.command(std::move(job), std::move(command), std::move(done));
  }

 private:
  Server& server_;
};

}  // namespace muster::rendezvous

#pragma once

#include "agent/run/keeper.hpp"
#include "agent/run/life.hpp"
#include "agent/run/remote_attendance.hpp"
#include "base/log/log.hpp"
#include "launcher/embedded_server.hpp"
#include "launcher/hosting.hpp"
#include "launcher/options.hpp"
#include "rendezvous/client/attendance.hpp"
#include "rendezvous/client/line.hpp"
#include "rendezvous/client/lookup.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace muster::launcher {

/// The attendance of a node whose job meets at an endpoint: finds out who hosts the server there,
/// hosts it where that is this node (hosting.hpp), and from then on is the agent's attendance at
/// it. Loop thread only.
///
///   looking --this node is to host, and could bind--> attending its own server
///   looking --a server answers, or another machine's address is known--> attending that one
///   looking --join_timeout, a stranger has our port, or another machine's name is our own--> given
///   up
class MeetingPoint : public rendezvous::Attendance {
 public:
  struct Settings {
    Meeting meeting;
    /// Less `hello.machine`'s address, and less what attendance and agent fill in.
    agent::RemoteAttendance::Settings attendance;
    EmbeddedServer::Settings server;
  };

  /// `keeper` and `logger` outlive it.
  MeetingPoint(boost::asio::io_context& loop, Settings settings, const agent::KeeperLink& keeper,
               Logger& logger);
  MeetingPoint(const MeetingPoint&) = delete;
  MeetingPoint& operator=(const MeetingPoint&) = delete;
  ~MeetingPoint() override;

  void attend(Handlers handlers) override;
  void report(Report report) override;
  [[nodiscard]] bool is_leased() const override { return true; }
  [[nodiscard]] bool hosts_rendezvous() const override { return server_ != nullptr; }
  [[nodiscard]] std::string local_address() const override;
  void say_farewell(const std::string& reason) override;

  /// The node rank of the newest Assignment; nullopt: there was none.
  [[nodiscard]] std::optional<NodeRank> node_rank() const { return node_rank_; }

  /// After the agent has left with the verdict: serves on, on the loop, until every other agent has
  /// left too or been given up, or one of the signals comes. Does nothing where we host nothing.
  void see_off(const std::vector<int>& signals);

 private:
  void later(std::function<void()> what);
  void look();
  void found(Result<std::vector<posix::SocketAddress>> addresses);
  bool try_to_host();
  void probe();
  void look_again(const std::string& cause);
  void join(const Endpoint& server);
  void give_up(int exit_code, const std::string& message);
  [[nodiscard]] bool is_silent_for_long() const;
  [[nodiscard]] Endpoint store_endpoint() const;

  boost::asio::io_context& loop_;
  Settings settings_;
  const agent::KeeperLink& keeper_;
  Logger& logger_;
  Handlers handlers_;

  std::vector<Report> unsaid_;  // Until we attend.
  std::chrono::steady_clock::time_point began_;
  std::vector<std::string> addresses_;  // Of the endpoint; numeric.
  std::vector<std::string> own_;        // Those of them that are this machine's.
  std::unique_ptr<rendezvous::Lookup> lookup_;
  std::unique_ptr<rendezvous::Line> probe_;
  boost::asio::steady_timer pause_;
  std::string trouble_;  // In hosting.
  std::string said_;
  bool is_over_ = false;

  std::unique_ptr<EmbeddedServer> server_;
  std::unique_ptr<agent::RemoteAttendance> attendance_;
  std::optional<NodeRank> node_rank_;
  agent::Life life_;
};

}  // namespace muster::launcher

#pragma once

#include "agent/core/attendee.hpp"
#include "agent/run/farewell_note.hpp"
#include "agent/run/keeper.hpp"
#include "agent/run/life.hpp"
#include "base/endpoint.hpp"
#include "base/log/log.hpp"
#include "base/posix/boot_clock.hpp"
#include "base/posix/cgroup.hpp"
#include "rendezvous/client/attendance.hpp"
#include "rendezvous/client/line.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

namespace muster::agent {

/// The attendance of a node at a rendezvous that may be elsewhere: Attendee decides, and this is
/// its edge: the connections, the boot clock with one timer, and the memory shared with the keeper
/// (the lease's end, and the farewell that the keeper says should we die). Loop thread only.
///
/// It begins with the agent's Hello. A store host that is unspecified in what the agent reports
/// ("0.0.0.0", "::") becomes our end of the connection on which the report goes. The scope of a
/// link-local master is this machine's in what is delivered.
class RemoteAttendance : public rendezvous::Attendance {
 public:
  struct Settings {
    Endpoint server;
    std::optional<std::string> token;
    std::string local_address;  ///< Numeric; connections come from it. Empty: any.
    std::string secret;         ///< Behind `hello.incarnation`.
    /// What the launcher knows. The agent fills in slots, role, store and addresses.
    Hello hello;
    std::uint64_t seed = 0;  ///< Of the jitter between attempts to connect.
  };

  /// `keeper` and `logger` outlive it. Fails where the system has no timer.
  [[nodiscard]] static Result<std::unique_ptr<RemoteAttendance>> create(
      boost::asio::io_context& loop, Settings settings, const KeeperLink& keeper, Logger& logger);
  RemoteAttendance(const RemoteAttendance&) = delete;
  RemoteAttendance& operator=(const RemoteAttendance&) = delete;
  /// Hangs up. The keeper says farewell once we are gone, unless the job's verdict is known.
  ~RemoteAttendance() override;

  void attend(Handlers handlers) override { handlers_ = std::move(handlers); }
  void report(Report report) override;
  [[nodiscard]] bool is_leased() const override {
    return settings_.hello.settings.lease.count() > 0;
  }
  [[nodiscard]] std::string local_address() const override { return local_; }
  void say_farewell(const std::string& reason) override;

  /// The server's end of the newest connection that stood, numeric; empty: none did.
  [[nodiscard]] const std::string& server_address() const { return farewell_.server.host; }

 private:
  struct Connection {
    std::unique_ptr<rendezvous::Line> line;
    rendezvous::LineFacts ends;
  };

  RemoteAttendance(boost::asio::io_context& loop, Settings settings, const KeeperLink& keeper,
                   Logger& logger, posix::BootTimer timer);

  void begin(const Hello& hello);
  void feed(Attendee::Event event);
  void perform(const std::vector<Attendee::Action>& actions);
  void act(const Attendee::Dial& dial);
  void act(const Attendee::HangUp& hang_up);
  void act(const Attendee::Transmit& transmit);
  void act(const Attendee::Renew& renew);
  void act(const Attendee::HalfLease& half);
  void act(const Attendee::Fence& fence);
  void act(const Attendee::Deliver& deliver);
  void act(const Attendee::Say& say);
  void act(const Attendee::Leave& leave);

  void arm_timer();
  void watch_timer();
  void forget(std::uint64_t line);
  [[nodiscard]] bool is_farewell_due() const;
  [[nodiscard]] bool leave_note();
  [[nodiscard]] bool note_will_fit() const;

  boost::asio::io_context& loop_;
  Settings settings_;
  const KeeperLink& keeper_;
  Logger& logger_;
  Handlers handlers_;

  std::optional<Attendee> attendee_;
  std::deque<Attendee::Event> events_;
  bool is_feeding_ = false;
  posix::BootTimer timer_;
  boost::asio::posix::stream_descriptor timer_wait_;  // A duplicate of the timer.

  std::map<std::uint64_t, Connection> connections_;  // By the attendee's name for them.
  std::string local_;                                // Our end of the newest that stood.
  std::string said_;
  bool is_welcome_ = false;              // To some server.
  std::optional<posix::Cgroup> memory_;  // Of this node, with its innermost limit; nullopt: none.
  FarewellNote farewell_;
  Life life_;
};

}  // namespace muster::agent

#pragma once

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/log/log.hpp"
#include "base/membership.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>

namespace muster::rendezvous {

struct LineOptions {
  Endpoint server;                   ///< A name is looked up on a thread of its own.
  std::optional<std::string> token;  ///< Proven to the server, and asked of it.
  std::string local_address;         ///< Numeric; the connection comes from it. Empty: any.
  /// To connect, and for the server to show that it is one. A service that is none is named after
  /// Line::kSilence of silence already.
  Duration patience = std::chrono::seconds(10);
};

/// The connection's ends, numeric, without ports; a link-local one with its scope.
struct LineFacts {
  std::string local;
  std::string peer;
};

/// One connection of an agent to its rendezvous server, from dialling to its end. Loop thread only.
///
///   dialling --a server of muster answered--> up --either end, or a frame that is none--> down
///   dialling --nobody, somebody else, or not in time--> down
///
/// Handlers are called from the loop, never from within a call of this class; after on_down none
/// is. A handler may destroy the line, and after its destructor none is called.
///
/// A server that turns the agent away before its Hello (version, token) counts as up: its Refusal,
/// or the line's own where the server could not prove the token, answers the Hello.
class Line {
 public:
  /// A service that says nothing for so long after the connection stands is none of muster.
  static constexpr Duration kSilence = std::chrono::milliseconds(1500);

  struct Handlers {
    std::function<void(const LineFacts&)> on_up;
    std::function<void(const ServerMessage&)> on_message;
    /// Unavailable: nobody there, or the connection broke: worth another try. InvalidArgument: who
    /// answers is no server of muster, or speaks nonsense; NotFound: the name is unknown.
    std::function<void(const Error&)> on_down;
  };

  /// Never blocks. `logger` outlives the line.
  [[nodiscard]] static std::unique_ptr<Line> dial(boost::asio::io_context& loop,
                                                  LineOptions options, Handlers handlers,
                                                  Logger& logger);
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  /// Hangs up. What was sent before still goes out, if the connection lasts.
  ~Line();

  /// After on_up. The first message is a Hello. What a lost connection did not take is lost: the
  /// agent says it again after its next Hello.
  void send(const AgentMessage& message);

 private:
  class Connection;
  explicit Line(std::shared_ptr<Connection> connection);

  std::shared_ptr<Connection> connection_;
};

}  // namespace muster::rendezvous

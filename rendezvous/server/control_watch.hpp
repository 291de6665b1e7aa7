#pragma once

#include "base/log/log.hpp"
#include "rendezvous/core/rendezvous.hpp"
#include "rendezvous/server/control_call.hpp"
#include "rendezvous/server/job_board.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>

#include <boost/asio/steady_timer.hpp>

namespace muster::v1 {
class WatchedEvent;
}

namespace muster::rendezvous {

/// One WatchEvents call, as gRPC holds it. Deletes itself when gRPC is done with it, which is after
/// it was finished.
class WatchStream;

/// The duty to finish such a call. Dropping it answers UNAVAILABLE.
struct FinishStream {
  void operator()(WatchStream* stream) const;
};
using OwnedStream = std::unique_ptr<WatchStream, FinishStream>;

/// All WatchEvents calls of a server: what happens is written to each, as fast as its reader takes
/// it; what a reader leaves lying beyond a limit is lost to it, and counted. Loop thread only.
class Watches {
 public:
  struct Limits {
    std::size_t watchers;
    std::size_t unread_events;
  };
  Watches(boost::asio::io_context& loop, const JobBoard& board, Limits limits);
  Watches(const Watches&) = delete;
  Watches& operator=(const Watches&) = delete;
  ~Watches();  ///< As `end_all`.

  /// Made on a thread of gRPC's. `cancelled` and `written` are called from there.
  [[nodiscard]] static WatchStream* make_stream(std::function<void()> cancelled,
                                                std::function<void(bool)> written);
  [[nodiscard]] static grpc::ServerWriteReactor<v1::WatchedEvent>* to_grpc(WatchStream* stream);
  static void refuse(WatchStream& stream, const grpc::Status& status);

  /// `job` empty: of all jobs. Tells the state of the jobs first.
  void begin(CallId id, OwnedStream stream, const std::string& job);
  /// What was being written has been taken; `ok` false: the stream is broken.
  void written(CallId id, bool ok);
  void cancelled(CallId id);

  void noted(const Rendezvous::Note& note);
  void ended(const std::string& job, const Verdict& verdict);

  void end_all(const grpc::Status& status);

 private:
  class Watch;

  void tell(const std::string& job, const v1::WatchedEvent& event);
  void changed(const std::string& job);
  void tell_changes();

  const JobBoard& board_;
  Limits limits_;
  std::map<CallId, std::unique_ptr<Watch>> watches_;
  std::set<std::string> changed_;            // Jobs to be looked at when the timer fires.
  std::map<std::string, std::string> told_;  // By job: its state as it was last told, serialised.
  boost::asio::steady_timer pause_;
  bool pausing_ = false;
  std::shared_ptr<int> alive_ =
      std::make_shared<int>();  // A timer that has fired can't be cancelled.
};

}  // namespace muster::rendezvous
